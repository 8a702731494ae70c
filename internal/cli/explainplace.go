// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/internal/config"
	"github.com/postern-gate/postern/internal/config/advice"
	"github.com/postern-gate/postern/internal/fsserver/edit"
)

// The begin of a reason: a rule, whose pattern stands in quotes, and where it
// stands. What comes behind, and a path, is anybody's text.
const (
	ruleText    = `^(?:[^"(]|"(?:[^"\\]|\\.)*")*? \(`
	builtinRule = ruleText + `built-in: ([a-z-]+)\): `
	placedRule  = ruleText + `((?:/|[A-Za-z]:\\).*?):([0-9]+):([0-9]+)\): `
)

// placeOf is where the rule of a reason stands; false for one without a place.
func placeOf(reason string) (at core.Position, ok bool) {
	m := regexp.MustCompile(placedRule).FindStringSubmatch(reason)
	if m == nil {
		return at, false
	}
	line, _ := strconv.Atoi(m[2]) // digits
	column, _ := strconv.Atoi(m[3])
	return core.Position{File: m[1], Line: line, Column: column}, true
}

// ruledElsewhere says why the policy here can't tell, "" where it can: the rule
// stood in a file that no start from here would read, as that of another project.
func (x *explanation) ruledElsewhere() string {
	cfg := x.w.live.Current()
	at, ok := placeOf(x.told.Reason)
	if !ok || x.told.Policy == x.w.live.Version() || at.File == cfg.UserFile || at.File == config.SystemFile || slices.Contains(cfg.Files, at.File) {
		return ""
	}
	where := "with --policy " + textsafe.Name(at.File)
	if folder, ok := strings.CutSuffix(filepath.ToSlash(at.File), "/.postern/policy.yaml"); ok {
		folder = resolved(filepath.FromSlash(folder))
		if folder == x.told.Folder || slices.ContainsFunc(cfg.Roots, func(r config.Root) bool { return resolved(r.Path) == folder }) {
			return "" // that of this project, which is gone
		}
		where = "in " + textsafe.Name(folder)
	}
	return "the rule stood in " + textsafe.Name(at.File) + ", which is not in force here: run it " + where
}

// ofCode is the advice for the code; of an edit that met another text the record
// says so, and no etag helps.
func (x *explanation) ofCode(code fault.Code) advice.Step {
	step := advice.For(code)
	switch x.told.Reason {
	case edit.NotThere:
		step.Text = "read the file again and send oldText as it stands there"
	case edit.Several:
		step.Text = "send more of the lines around it as oldText, so that it is unique, or set replaceAll"
	}
	return step
}

// fromRecord is what a record tells of the rule where its names can't be judged
// again.
func (x *explanation) fromRecord(base advice.Step) []advice.Step {
	if m := regexp.MustCompile(builtinRule).FindStringSubmatch(x.told.Reason); m != nil && x.w != nil {
		e := advice.NewEditor(x.w.live.Current())
		step, _ := e.Lift(m[1])
		return append([]advice.Step{step}, e.Examples()...)
	}
	if at, ok := placeOf(x.told.Reason); ok {
		return []advice.Step{{
			Kind: advice.InPolicy, Text: "look at the rule that stood there; whether another one matches too can't be told",
			File: at.File, Line: at.Line, Column: at.Column,
		}}
	}
	if base.Text == "" {
		base.Text = "ask where it can be judged: postern check " + x.told.Op + " NAME"
	}
	return []advice.Step{base}
}
