// SPDX-License-Identifier: Apache-2.0

package records

import (
	"strings"
	"time"

	"github.com/postern-gate/postern/core/glob"
)

// Filter chooses records. An empty field chooses all; a record must fit every
// field that is not. The zero value chooses every line, also those that are
// not records; any other filter leaves those out.
type Filter struct {
	Agent, Decision, Event, Corr, Session, Source string // equal
	Op, Code                                      string // equal, or the beginning where it ends in a star, as "fs.*"
	Resource                                      Resource
	// Text occurs in a field that is shown, in lower or upper case.
	Text         string
	Since, Until time.Time // the first one is in, the second one not
}

// Zero reports whether the filter chooses every line.
func (f *Filter) Zero() bool { return *f == Filter{} }

// Match reports whether the filter chooses the entry.
func (f *Filter) Match(e *Entry) bool {
	if e.Err != nil {
		return f.Zero()
	}
	r := &e.Record
	for _, pair := range [...][2]string{
		{f.Agent, r.Agent},
		{f.Decision, r.Decision},
		{f.Event, r.Event},
		{f.Corr, r.Corr},
		{f.Session, r.Session},
		{f.Source, r.Source},
	} {
		if pair[0] != "" && pair[0] != pair[1] {
			return false
		}
	}
	return f.occurs(r) && fits(f.Op, r.Op) && fits(f.Code, r.Code) && f.Resource.match(r.Resource) &&
		(f.Since.IsZero() || !r.Time.Before(f.Since)) && (f.Until.IsZero() || r.Time.Before(f.Until))
}

func (f *Filter) occurs(r *Record) bool {
	if f.Text == "" {
		return true
	}
	text := strings.ToLower(f.Text)
	for _, field := range r.fields() {
		if strings.Contains(strings.ToLower(*field.text), text) {
			return true
		}
	}
	return false
}

func fits(pattern, s string) bool {
	if begin, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(s, begin)
	}
	return pattern == "" || pattern == s
}

// Resource is a pattern for the resource of a record. Its zero value fits all.
type Resource struct {
	*resource
}

type resource struct {
	root    string // "" for any
	all     bool   // of the root
	pattern glob.Pattern
}

// ParseResource reads a pattern in the language of the policy. It fits what it
// names and all beneath, in any spelling that a file system may take for the
// same name. "root://" before it chooses one root; without, a name counts from
// the top of any root. The name of a private resource is its class and a hash,
// as "dotenv:*". Errors are those of glob.Compile.
func ParseResource(s string) (Resource, error) {
	r := resource{}
	root, name, ok := strings.Cut(s, "://")
	if ok {
		r.root, s = root, name
	}
	if r.all = ok && s == ""; r.all {
		return Resource{&r}, nil
	}
	var err error
	r.pattern, err = glob.CompileFolded(strings.TrimSuffix(s, "/"))
	return Resource{&r}, err
}

func (p Resource) match(name string) bool {
	if p.resource == nil {
		return true
	}
	root, path, ok := strings.Cut(name, "://")
	if !ok {
		root, path = "", name
	}
	if name == "" || p.root != "" && p.root != root {
		return false
	}
	return p.all || p.pattern.MatchBeneath(path)
}
