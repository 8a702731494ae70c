// SPDX-License-Identifier: Apache-2.0

package fsserver

import (
	"slices"
	"strings"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/fsserver/edit"
	"github.com/postern-gate/postern/internal/mcpwire"
	"github.com/postern-gate/postern/internal/safety"
)

// Limits of one call's arguments; the frame bounds the rest.
const (
	maxPaths    = 1000
	maxPatterns = 100
)

// read decodes the arguments of a call. Each has exactly its declared type,
// and there are no others.
func (t *tool) read(o mcpwire.Object) (arguments, error) {
	var a arguments
	for _, m := range o.Members() {
		if !slices.ContainsFunc(t.params, func(p param) bool { return p.name == m.Key }) {
			return a, t.unknown(m.Key)
		}
	}
	for i := range t.params {
		p := &t.params[i]
		v, given := o.Get(p.name)
		if !given && !p.required {
			continue
		}
		if err := p.decode(v, p.bind(&a)); err != nil {
			return a, p.refused(err, given)
		}
	}
	return a, nil
}

func (t *tool) unknown(name string) error {
	hint := "it takes no arguments"
	if len(t.params) > 0 {
		names := make([]string, len(t.params))
		for i, p := range t.params {
			names[i] = p.name
		}
		hint = "it takes " + strings.Join(names, ", ")
	}
	const most = 64 // bytes of the caller's own word that are repeated
	f := invalid(name[:min(len(name), most)]+" is not a parameter of "+t.name, hint)
	f.Err = safety.Recorded("the call has a parameter that the tool doesn't have")
	return f
}

// refused lets the log tell which parameter is wrong, by the name that the tool
// gives it.
func (p *param) refused(err error, given bool) error {
	f, what := *fault.As(err), " is not as it has to be"
	if !given {
		what = " is missing"
	}
	f.Err = safety.Recorded("the parameter " + p.name + what)
	return &f
}

func invalid(rule, hint string) *fault.Error {
	return &fault.Error{Code: fault.RequestInvalid, Rule: rule, Hint: hint}
}

func (p *param) decode(v mcpwire.Value, target any) (err error) {
	switch target := target.(type) {
	case *string:
		*target, err = v.String()
		if err == nil && p.choices != nil && !slices.Contains(p.choices, *target) {
			err = invalid(p.name+" must be one of "+strings.Join(p.choices, ", "), "")
		}
		if err == nil && p.filled && *target == "" {
			err = invalid(p.name+" must not be empty", "leave it out if there is none")
		}
	case *bool:
		// dry_run and dryRun are one switch: either of them sets it.
		on, wrong := v.Bool()
		*target, err = *target || on, wrong
	case *count:
		target.n, err = v.Int()
		target.given = true
		if err == nil && target.n < 0 {
			err = invalid(p.name+" must not be negative", "")
		}
	case *[]string:
		*target, err = p.decodeStrings(v)
	case *[]edit.Edit:
		*target, err = decodeEdits(v)
	}
	return err
}

func (p *param) decodeStrings(v mcpwire.Value) ([]string, error) {
	values, err := v.Array()
	if err != nil {
		return nil, err
	}
	most := maxPatterns
	if p.use != core.ActionUnknown {
		most = maxPaths
	}
	switch {
	case len(values) > most:
		return nil, invalid(p.name+" has too many entries", "send fewer at a time")
	case len(values) == 0 && p.required:
		return nil, invalid(p.name+" must have at least one entry", "")
	}
	list := make([]string, len(values))
	for i, value := range values {
		if list[i], err = value.String(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func decodeEdits(v mcpwire.Value) ([]edit.Edit, error) {
	values, err := v.Array()
	if err != nil {
		return nil, err
	}
	edits := make([]edit.Edit, len(values))
	for i, value := range values {
		o, err := value.Object()
		if err == nil {
			err = o.Only("oldText", "newText", "replaceAll")
		}
		if err == nil {
			err = decodeEdit(o, &edits[i])
		}
		if err != nil {
			return nil, err
		}
	}
	return edits, nil
}

func decodeEdit(o mcpwire.Object, e *edit.Edit) (err error) {
	oldText, _ := o.Get("oldText")
	if e.OldText, err = oldText.String(); err != nil {
		return err
	}
	newText, _ := o.Get("newText")
	if e.NewText, err = newText.String(); err != nil {
		return err
	}
	if all, given := o.Get("replaceAll"); given {
		e.ReplaceAll, err = all.Bool()
	}
	return err
}

// paths are the paths that a parameter holds, none for one that is no path.
func (p *param) paths(a *arguments) []string {
	if p.use == core.ActionUnknown {
		return nil
	}
	switch target := p.bind(a).(type) {
	case *string:
		return []string{*target}
	case *[]string:
		return *target
	}
	return nil
}

// spellings returns every path among the arguments, in the order of the
// parameters.
func (t *tool) spellings(a *arguments) []string {
	var all []string
	for i := range t.params {
		all = append(all, t.params[i].paths(a)...)
	}
	return all
}
