// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"slices"

	"github.com/postern-gate/postern/core/textsafe"
)

// Override is what may make a client run another entry of the name than ours, or
// none. Its texts come from files: draw them safely.
type Override struct {
	File string // absolute
	Key  string // in it, its parts joined by dots; "" where the file can't be read
	// Off says that the entry may be switched off there; else there is another one.
	Off bool
}

// doubt says it for a person. It can be drawn as it is.
func (o Override) doubt() string {
	switch at := textsafe.Word(o.File); {
	case o.Key == "":
		return "may be switched off or replaced in " + at + ", which can't be looked through"
	case o.Off:
		return "may be switched off by " + Brief(o.Key) + " in " + at
	default:
		return "is replaced or changed by " + Brief(o.Key) + " in " + at
	}
}

// step is what a person does about it. It can be drawn as it is.
func (o Override) step() string {
	if o.Key == "" {
		return "see that " + textsafe.Word(o.File) + " is a plain file that can be read and parsed"
	}
	if o.Off {
		return "change " + Brief(o.Key) + " in " + textsafe.Word(o.File)
	}
	return "take " + Brief(o.Key) + " out of " + textsafe.Word(o.File) + ", or rename one of the two"
}

// mostJudged is how many entries of a file are compared with other files: one that
// came with a project may hold any number.
const mostJudged = 20

// overrides are what may make the client run something else than the entry, one
// of each file and kind. Local says that a file of the user keeps the entry for
// this folder alone.
func (s *survey) overrides(a Attachment, own entry, local bool) (all []Override) {
	add := func(o Override) {
		if !slices.ContainsFunc(all, func(b Override) bool { return b.File == o.File && b.Off == o.Off }) {
			all = append(all, o)
		}
	}
	f := a.Client.form
	rivals, mixed := s.rivals(a, local)
	for _, l := range rivals {
		if l.keys == nil {
			l.keys = []string{f.key}
		}
		s.look(l.place, f.toml, append(s.keys(l.keys, a.Entry), a.Entry), mixed, func(key string, v any) {
			if key == "" || !f.agrees(own, v, mixed) {
				add(Override{File: l.place, Key: key})
			}
		})
	}
	for _, w := range switches(a.Client.ID) {
		if w.project && !a.InProject {
			continue
		}
		for _, path := range s.paths(w.place) {
			s.look(path, false, s.keys(w.keys, a.Entry), false, func(key string, v any) {
				if key == "" || w.off(s.ordered(path, key, v), a.Entry) {
					add(Override{File: path, Key: key, Off: key != ""})
				}
			})
		}
	}
	return all
}

// rivals are the layers whose entry of the same name counts before the entry, or is
// mixed with it, by the paths of their files.
func (s *survey) rivals(a Attachment, local bool) (rivals []layer, mixed bool) {
	all, mixed := layers(a.Client.ID)
	below := false
	for _, l := range all {
		itself := false
		for _, path := range s.paths(l.place) {
			if path == a.File && (l.keys != nil) == local {
				itself = true
			} else if !below || mixed {
				rivals = append(rivals, layer{path, l.keys})
			}
		}
		below = below || itself
	}
	if !below {
		return nil, mixed // the client has the entry in a place of its own
	}
	return rivals, mixed
}
