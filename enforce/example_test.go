// SPDX-License-Identifier: Apache-2.0

package enforce_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/core/policy"
	"github.com/postern-gate/postern/core/untrusted"
	"github.com/postern-gate/postern/enforce"
)

// openGate guards dir as the root "project", with its log and locks in
// stateDir. The layers decide, and the shipped default where they don't.
func openGate(dir, stateDir string, layers ...policy.Layer) (*enforce.Gate, *enforce.State, error) {
	root, err := pathguard.OpenRoot(dir, pathguard.Options{Name: "project", Forbidden: []string{stateDir}})
	if err != nil {
		return nil, nil, err
	}
	workspace, err := pathguard.NewWorkspace(root)
	if err != nil {
		return nil, nil, err
	}
	if err := workspace.Protect(stateDir); err != nil {
		return nil, nil, err
	}
	shipped := policy.Default()
	decider, err := policy.Compile(policy.Config{
		Roots:  []policy.Root{{Name: "project"}},
		Layers: layers, Fallback: &shipped,
	})
	if err != nil {
		return nil, nil, err
	}
	state, err := enforce.OpenState(stateDir, enforce.StateOptions{})
	if err != nil {
		return nil, nil, err
	}
	gate, err := enforce.New(enforce.Options{
		Workspace: workspace, Decider: decider, Recorder: state, Locker: state,
		Subject: core.Subject{Agent: "my-agent", Source: "my-host", Level: core.LevelSDK},
	})
	return gate, state, err
}

// demo is a folder with a file and a secret in it, and a place for the state.
func demo() (dir, stateDir string) {
	box, err := os.MkdirTemp("", "postern")
	if err != nil {
		panic(err)
	}
	dir = filepath.Join(box, "project")
	if err := os.Mkdir(dir, 0o700); err != nil {
		panic(err)
	}
	for name, content := range map[string]string{"notes.txt": "buy milk", ".env": "TOKEN=1"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			panic(err)
		}
	}
	return dir, filepath.Join(box, "state")
}

// A layer says what differs from the shipped default.
func ExampleNew_layer() {
	dir, stateDir := demo()
	drafts := policy.Match{Pattern: policy.Pattern{Text: "drafts/**"}, Decision: core.Allow}
	gate, state, err := openGate(dir, stateDir, policy.Layer{
		Deny: []policy.Pattern{{Text: "legal/**", Why: "ask the legal team"}},
		Rules: map[core.Action]policy.Rules{
			core.FSCreate: {Matches: []policy.Match{drafts}, Else: &policy.Outcome{Decision: core.Deny}},
			core.FSDelete: {Matches: []policy.Match{drafts}, Else: &policy.Outcome{Decision: core.Ask}},
		},
	})
	if err != nil {
		panic(err)
	}
	defer state.Close()
	project := gate.FS("project")

	fmt.Println(project.MkdirAll("drafts"))
	fmt.Println(project.WriteFile("drafts/a.txt", []byte("a")), project.Remove("drafts/a.txt"))
	fmt.Println(project.WriteFile("notes.txt", []byte("buy bread"))) // by the shipped default
	fmt.Println(project.WriteFile("new.txt", nil))
	fmt.Println(project.WriteFile("legal/terms.md", nil))
	// Output:
	// <nil>
	// <nil> <nil>
	// <nil>
	// write new.txt: fs.create project://new.txt: fs.create else: deny: the general rule
	// write legal/terms.md: fs.write project://legal/terms.md: deny "legal/**": ask the legal team
}

// The guarded file system is an io/fs file system with mutations.
func ExampleGate_FS() {
	gate, state, err := openGate(demo())
	if err != nil {
		panic(err)
	}
	defer state.Close()
	project := gate.FS("project")

	data, err := fs.ReadFile(project, "notes.txt")
	fmt.Println(string(data), err)

	_, err = fs.ReadFile(project, ".env")
	fmt.Println(errors.Is(err, fs.ErrPermission))

	fmt.Println(project.WriteFile("notes.txt", []byte("buy bread")))
	fmt.Println(project.Remove("notes.txt"))
	// Output:
	// buy milk <nil>
	// true
	// <nil>
	// remove notes.txt: fs.delete project://notes.txt: fs.delete: ask (shipped default): the general rule, and nobody can be asked
}

// A tool author declares which parameters hold paths; all of them are judged
// before the handler runs.
func ExampleGate_Guard() {
	gate, state, err := openGate(demo())
	if err != nil {
		panic(err)
	}
	defer state.Close()
	wordCount := gate.Guard(enforce.Tool{
		Server: "stats", Name: "word_count", Class: core.ReadOnly,
		Params: []enforce.Param{enforce.Project("paths", core.FSRead)},
	}, func(_ context.Context, call enforce.ToolCall) (any, error) {
		return len(call.Paths["paths"]), nil
	})

	result, err := wordCount(context.Background(), enforce.ToolCall{Args: map[string]any{"paths": []any{"notes.txt"}}})
	fmt.Println(result, err)

	result, err = wordCount(context.Background(), enforce.ToolCall{Args: map[string]any{"paths": []any{"notes.txt", "/etc/passwd"}}})
	fmt.Println(result, errors.Is(err, fs.ErrPermission))
	// Output:
	// 1 <nil>
	// <nil> true
}

// What declarations don't cover is resolved and wrapped by hand.
func ExampleGate_Resolve() {
	gate, state, err := openGate(demo())
	if err != nil {
		panic(err)
	}
	defer state.Close()
	ctx := context.Background()
	name, err := gate.Resolve(ctx, enforce.AnyRoot("template", core.FSRead), "sub/../notes.txt")
	if err != nil {
		panic(err)
	}
	file, err := gate.Open(ctx, name.String())
	if err != nil {
		panic(err)
	}
	defer file.Close()
	text := make([]byte, file.Size())
	if _, err := file.ReadAt(text, 0); err != nil {
		panic(err)
	}
	forModel := enforce.Wrap(untrusted.File, name.String(), string(text))
	fmt.Println(name, len(forModel.String()) > len(text))
	// Output:
	// project://notes.txt true
}
