// SPDX-License-Identifier: Apache-2.0

// Package safety is the whole permission model of tools in one place: the
// class of each action and tool, and what a call must say before it may act.
//
// The class follows the effect, not the verb: what can be taken back or only
// adds is mutating; what removes, overwrites what undo does not cover, or
// can't be taken back is destructive; what steers a running program is
// runtime.
package safety

import (
	"maps"
	"slices"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
)

// Rating is the class with the flags that an approval shows.
type Rating struct {
	Class        core.Class
	WritesDisk   bool
	ExecutesCode bool
}

// OfAction rates an action. An unknown action is destructive in every way.
func OfAction(a core.Action) Rating {
	switch a {
	case core.FSRead, core.FSList, core.FSWatch, core.NetFetch, core.NetConnect:
		return Rating{Class: core.ReadOnly}
	case core.FSWrite, core.FSCreate, core.FSRename:
		return Rating{Class: core.Mutating, WritesDisk: true}
	case core.FSDelete:
		return Rating{Class: core.Destructive, WritesDisk: true}
	case core.ProcExec:
		return Rating{Class: core.Runtime, WritesDisk: true, ExecutesCode: true}
	case core.ToolCall, core.ActionUnknown:
	}
	return Rating{Class: core.Destructive, WritesDisk: true, ExecutesCode: true}
}

var readOnly = Rating{Class: core.ReadOnly}

// tools rates the tools that postern itself offers, as they are with undo. A call
// that does away with what undo does not cover is destructive, which its result
// says.
var tools = map[string]Rating{
	"read_file":                 readOnly,
	"read_text_file":            readOnly,
	"read_media_file":           readOnly,
	"read_multiple_files":       readOnly,
	"list_directory":            readOnly,
	"list_directory_with_sizes": readOnly,
	"directory_tree":            readOnly,
	"search_files":              readOnly,
	"search_content":            readOnly,
	"get_file_info":             readOnly,
	"list_allowed_directories":  readOnly,
	"write_file":                OfAction(core.FSWrite),
	"edit_file":                 OfAction(core.FSWrite),
	"append_file":               OfAction(core.FSWrite),
	"create_directory":          OfAction(core.FSCreate),
	"copy_file":                 OfAction(core.FSCreate),
	"move_file":                 OfAction(core.FSRename),
	"delete_file":               OfAction(core.FSDelete),
}

// Tools returns the names of the tools that postern itself offers, sorted.
func Tools() []string { return slices.Sorted(maps.Keys(tools)) }

// OfTool rates one of our tools. Any other name is destructive in every way.
func OfTool(name string) (Rating, bool) {
	if r, ok := tools[name]; ok {
		return r, true
	}
	return OfAction(core.ToolCall), false
}

// methods rates what our server is asked to do with a path beside its tools.
var methods = map[string]Rating{
	"resources/read":      readOnly,
	"resources/subscribe": readOnly,
}

// OfCall rates one of our tools, or another method of the server. Any other name is
// destructive in every way.
func OfCall(name string) (Rating, bool) {
	if r, ok := methods[name]; ok {
		return r, true
	}
	return OfTool(name)
}

// Preconditions is what a call says of itself.
type Preconditions struct {
	Confirm bool   // the caller's own confirm: an accident guard, not oversight
	IfMatch string // the etag that the caller read, "" for none
}

// Required is what the policy asks of such a call.
type Required struct {
	Confirm bool
	IfMatch bool
}

// Check holds a call against what the policy requires and against what is
// there now: etag is the target's present one, "" when nothing is there.
// discards says what the call does away with, as "This call deletes x".
// It has no effect and runs before any.
func Check(op, resource string, p Preconditions, r Required, etag, discards string) error {
	if r.Confirm && !p.Confirm {
		return &fault.Error{
			Code: fault.ConfirmMissing, Op: op, Resource: resource,
			Rule: "PRECONDITION_FAILED: " + discards + ". Set confirm=True to proceed. [required=confirm]",
		}
	}
	if p.IfMatch != "" && p.IfMatch != etag {
		rule := "it changed since it was read: its etag is now " + etag
		if etag == "" {
			rule = "it changed since it was read: it no longer exists"
		}
		return &fault.Error{Code: fault.PreconditionFailed, Op: op, Resource: resource, Rule: rule}
	}
	if r.IfMatch && p.IfMatch == "" && etag != "" {
		return &fault.Error{
			Code: fault.PreconditionFailed, Op: op, Resource: resource,
			Rule: "the policy requires ifMatch for " + op, Hint: "read it and send its etag as ifMatch",
			Err: Recorded("the policy requires ifMatch, and the call has none"),
		}
	}
	return nil
}

// Recorded is a cause whose text the log may tell, in the place of what the code
// means: words of ours, with nothing of what a file holds or a caller wrote.
type Recorded string

// Error returns the words.
func (r Recorded) Error() string { return string(r) }

// Recorded is what the log tells.
func (r Recorded) Recorded() string { return string(r) }

// shownOnly are the fields of a tool that change nothing of what it does: the
// agent's own words about the call. The list is closed: of any other tool every
// field counts, whatever its name.
var shownOnly = map[[2]string][]string{
	{"claude-code", "Bash"}: {"description"},
}

// ShownOnly returns the names of the fields of a tool that are drawn as the
// agent's words and bind no approval.
func ShownOnly(server, tool string) []string { return shownOnly[[2]string{server, tool}] }
