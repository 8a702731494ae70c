// SPDX-License-Identifier: Apache-2.0

package safety

import (
	"errors"
	"strings"
	"testing"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
)

// TestClassContract pins the class of every tool and action: a change here is
// a change of what people were promised.
func TestClassContract(t *testing.T) {
	want := map[string]core.Class{
		"read_file": core.ReadOnly, "read_text_file": core.ReadOnly, "read_media_file": core.ReadOnly,
		"read_multiple_files": core.ReadOnly, "list_directory": core.ReadOnly,
		"list_directory_with_sizes": core.ReadOnly, "directory_tree": core.ReadOnly,
		"search_files": core.ReadOnly, "search_content": core.ReadOnly, "get_file_info": core.ReadOnly, "list_allowed_directories": core.ReadOnly,
		"write_file": core.Mutating, "edit_file": core.Mutating, "append_file": core.Mutating,
		"create_directory": core.Mutating, "copy_file": core.Mutating, "move_file": core.Mutating,
		"delete_file": core.Destructive,
	}
	if len(want) != len(tools) {
		t.Errorf("%d tools are rated, %d are pinned here", len(tools), len(want))
	}
	for name, class := range want {
		got, ok := OfTool(name)
		if !ok || got.Class != class {
			t.Errorf("%s: class %v, known %v; want %v", name, got.Class, ok, class)
		}
		if got.WritesDisk != (class != core.ReadOnly) || got.ExecutesCode {
			t.Errorf("%s: flags %+v", name, got)
		}
	}
	actions := map[core.Action]core.Class{
		core.FSRead: core.ReadOnly, core.FSList: core.ReadOnly, core.FSWatch: core.ReadOnly,
		core.NetFetch: core.ReadOnly, core.NetConnect: core.ReadOnly,
		core.FSWrite: core.Mutating, core.FSCreate: core.Mutating, core.FSRename: core.Mutating,
		core.FSDelete: core.Destructive, core.ProcExec: core.Runtime, core.ToolCall: core.Destructive,
	}
	for _, a := range core.Actions() {
		if got := OfAction(a).Class; got != actions[a] {
			t.Errorf("%v: class %v, want %v", a, got, actions[a])
		}
	}
}

func TestUnknownIsDestructive(t *testing.T) {
	got, known := OfTool("format_disk")
	if known || got.Class != core.Destructive || !got.WritesDisk || !got.ExecutesCode {
		t.Errorf("unknown tool rated %+v, known %v", got, known)
	}
	if r := OfAction(core.Action(200)); r.Class != core.Destructive || !r.ExecutesCode {
		t.Errorf("unknown action rated %+v", r)
	}
}

func TestCheck(t *testing.T) {
	tests := map[string]struct {
		p    Preconditions
		r    Required
		etag string
		code fault.Code
		text string
	}{
		"nothing required":           {code: fault.OK},
		"confirm missing":            {r: Required{Confirm: true}, code: fault.ConfirmMissing, text: "PRECONDITION_FAILED: This call deletes a. Set confirm=True to proceed. [required=confirm]"},
		"confirm given":              {p: Preconditions{Confirm: true}, r: Required{Confirm: true}, code: fault.OK},
		"etag matches":               {p: Preconditions{IfMatch: "e1"}, etag: "e1", code: fault.OK},
		"etag differs":               {p: Preconditions{IfMatch: "e1"}, etag: "e2", code: fault.PreconditionFailed, text: "its etag is now e2"},
		"target gone":                {p: Preconditions{IfMatch: "e1"}, code: fault.PreconditionFailed, text: "no longer exists"},
		"etag required":              {r: Required{IfMatch: true}, etag: "e1", code: fault.PreconditionFailed, text: "requires ifMatch"},
		"etag required, new file":    {r: Required{IfMatch: true}, code: fault.OK},
		"confirm outranks the etag":  {p: Preconditions{IfMatch: "e1"}, r: Required{Confirm: true}, etag: "e2", code: fault.ConfirmMissing},
		"confirm can't replace etag": {p: Preconditions{Confirm: true}, r: Required{IfMatch: true}, etag: "e1", code: fault.PreconditionFailed},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := Check("fs.delete", "project://a", tc.p, tc.r, tc.etag, "This call deletes a")
			if got := fault.CodeOf(err); got != tc.code {
				t.Fatalf("code %v, want %v (%v)", got, tc.code, err)
			}
			if err != nil && !strings.Contains(fault.As(err).Lines(), tc.text) {
				t.Errorf("lines %q lack %q", fault.As(err).Lines(), tc.text)
			}
			if err != nil && !errors.Is(err, fault.ErrStale) {
				t.Errorf("%v is not fault.ErrStale", err)
			}
		})
	}
}
