// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/tailscale/hujson"
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
	// Odd are what the entry has beside what init writes and what may make the
	// client start something else: names of members, and in a project's file flags
	// of the line. They come from the file too.
	Odd []string
	// InProject says that the file is one of the project's.
	InProject bool
	// Everywhere says that the client offers the entry in every session, in
	// whatever folder that is.
	Everywhere bool
	// Overrides are why the client may run another entry of the name, or none.
	Overrides []Override
}

// Attached returns the entries of the clients' files, the project's and the
// user's, that run a `postern serve`, and those that have our name and run
// something else. Of the user's files these may be for another folder: see Args.
// A file that can't be read or parsed is an error beside them; one that is
// absent is none.
func Attached(w World) ([]Attachment, []error) {
	d := newDisk(w)
	defer d.close()
	s := newSurvey(w, d)
	var all []Attachment
	var errs []error
	for _, c := range Clients() {
		for _, f := range c.files(w) {
			got, err := c.attachedIn(s, f)
			all = append(all, got...)
			if err != nil {
				errs = append(errs, err)
			}
		}
	}
	return all, errs
}

func (c Client) attachedIn(s *survey, f file) ([]Attachment, error) {
	if !there(f.path) {
		return nil, nil
	}
	w := s.world
	at, entries, err := s.disk.entries(c, f)
	if err != nil {
		return nil, err
	}
	shared := len(entries)
	if c.ID == "claude-code" && !f.project {
		entries = append(entries, c.form.ofFolder(at.text, w.Project)...)
	}
	var all []Attachment
	for i, e := range entries {
		local := i >= shared // it is named as in a file of the project
		mine := e.name == Server{}.serverName(w, f.project || local)
		if !e.serves() && !mine {
			continue
		}
		odd := e.odd
		if f.project {
			odd = append(odd, e.oddFlags()...)
		}
		a := Attachment{
			Client: c, File: f.path, Entry: e.name, Command: e.command, Args: e.args, Foreign: !e.serves(), Odd: odd, InProject: f.project,
			Everywhere: !f.project && !local,
		}
		if a.Overrides = []Override{{File: f.path}}; len(all) < mostJudged {
			a.Overrides = s.overrides(a, e, local)
		}
		all = append(all, a)
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
func (f form) ofFolder(text []byte, folder string) []entry {
	var file struct {
		Projects map[string]struct {
			Servers map[string]json.RawMessage `json:"mcpServers"`
		} `json:"projects"`
	}
	if json.Unmarshal(bytes.TrimPrefix(text, bom), &file) != nil {
		return nil // what is of another shape has no entries
	}
	var all []entry
	servers := file.Projects[folder].Servers
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		v, err := hujson.Parse(servers[name])
		if err != nil {
			continue
		}
		e, _ := f.read(name, v.Value)
		all = append(all, e)
	}
	return all
}
