// SPDX-License-Identifier: Apache-2.0

package attach

// Attachment is an entry of a client's file that concerns postern.
type Attachment struct {
	Client Client
	File   string // absolute
	Entry  string // its name there
	// Command and Args are what it runs. They come from the file: draw them safely.
	Command string
	Args    []string
	// Foreign says that it has our name and isn't a line that init writes.
	Foreign bool
	// InProject says that the file is one of the project's.
	InProject bool
}

// Attached returns the entries of the clients' files, the project's and the
// user's, that run a `postern serve`, and those that have our name and run
// something else. Of the user's files these may be for another folder: see Args.
// A file that can't be read or parsed is an error beside them; one that is
// absent is none.
func Attached(w World) ([]Attachment, []error) {
	d := newDisk(w)
	defer d.close()
	var all []Attachment
	var errs []error
	for _, c := range Clients() {
		for _, f := range c.files(w) {
			got, err := c.attachedIn(w, d, f)
			all = append(all, got...)
			if err != nil {
				errs = append(errs, err)
			}
		}
	}
	return all, errs
}

func (c Client) attachedIn(w World, d *disk, f file) ([]Attachment, error) {
	if !there(f.path) {
		return nil, nil
	}
	at, err := d.read(f)
	if err != nil {
		return nil, err
	}
	entries, prob := c.form.entries(at.text)
	if prob != nil {
		return nil, unfit(at, prob)
	}
	var all []Attachment
	for _, e := range entries {
		mine := e.name == Server{}.serverName(w, f.project)
		if !e.serves() && !mine {
			continue
		}
		all = append(all, Attachment{
			Client: c, File: f.path, Entry: e.name, Command: e.command, Args: e.args, Foreign: !e.serves(), InProject: f.project,
		})
	}
	return all, nil
}
