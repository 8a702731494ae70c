// SPDX-License-Identifier: Apache-2.0

// Package policies holds the policies that come with postern, as files: the
// shipped default spelled out, what `postern init` writes, and ready ones for
// common kinds of work. Each carries its own examples.
package policies

import (
	"embed"
	"slices"
	"strings"
)

//go:embed *.yaml
var files embed.FS

// The two that init writes. Both leave every key but version to the shipped
// default.
const (
	user    = "user"
	project = "project"
)

// User is the policy of a person, as init writes it where there is none.
func User() []byte { return read(user) }

// Project is the policy of a project, as init writes it where there is none.
func Project() []byte { return read(project) }

// Ready lists the names that Named knows, sorted: policies that can take the
// user's place.
func Ready() []string {
	entries, _ := files.ReadDir(".") // embedded
	var names []string
	for _, e := range entries {
		if name := strings.TrimSuffix(e.Name(), ".yaml"); name != user && name != project {
			names = append(names, name)
		}
	}
	return names
}

// Named is a ready policy; ok is false for a name that Ready doesn't list.
func Named(name string) (text []byte, ok bool) {
	if !slices.Contains(Ready(), name) {
		return nil, false
	}
	return read(name), true
}

func read(name string) []byte {
	text, _ := files.ReadFile(name + ".yaml") // embedded
	return text
}
