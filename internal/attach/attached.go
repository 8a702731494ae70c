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
// something else. A file that can't be read or parsed is an error beside them;
// one that is absent is none.
func Attached(w World) ([]Attachment, []error) {
	var all []Attachment
	var errs []error
	for _, c := range Clients() {
		for _, at := range c.files(w) {
			got, err := c.attachedIn(w, at)
			all = append(all, got...)
			if err != nil {
				errs = append(errs, err)
			}
		}
	}
	return all, errs
}
