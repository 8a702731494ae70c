// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
)

// Attachment is an entry of a client's file that concerns postern.
type Attachment struct {
	Client Client
	File   string // absolute
	Entry  string // its name there
	// Command and Args are what it runs. They come from the file: draw them safely.
	// A program of our name may still be another one.
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
	at, entries, err := d.entries(c, f)
	if err != nil {
		return nil, err
	}
	if c.ID == "claude-code" && !f.project {
		entries = append(entries, ofFolder(at.text, w.Project)...)
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

// entries reads a client's file and the entries in it.
func (d *disk) entries(c Client, f file) (*spot, []entry, error) {
	at, err := d.read(f)
	if err != nil {
		return nil, nil, err
	}
	entries, prob := c.form.entries(at.text)
	if prob != nil {
		return nil, nil, unfit(at, prob)
	}
	return at, entries, nil
}

// ofFolder are the entries that Claude Code keeps for one folder in the user's
// file: its own command for adding a server puts them there.
func ofFolder(text []byte, folder string) []entry {
	var file struct {
		Projects map[string]struct {
			Servers map[string]struct {
				Command string   `json:"command"`
				Args    []string `json:"args"`
			} `json:"mcpServers"`
		} `json:"projects"`
	}
	if json.Unmarshal(bytes.TrimPrefix(text, bom), &file) != nil {
		return nil // what is of another shape has no entries
	}
	var all []entry
	servers := file.Projects[folder].Servers
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		all = append(all, entry{name, servers[name].Command, servers[name].Args})
	}
	return all
}
