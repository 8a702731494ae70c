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

// openGate guards dir as the root "project" under the shipped default policy,
// with its log and locks in stateDir.
func openGate(dir, stateDir string) (*enforce.Gate, error) {
	root, err := pathguard.OpenRoot(dir, pathguard.Options{Name: "project", Forbidden: []string{stateDir}})
	if err != nil {
		return nil, err
	}
	workspace, err := pathguard.NewWorkspace(root)
	if err != nil {
		return nil, err
	}
	if err := workspace.Protect(stateDir); err != nil {
		return nil, err
	}
	decider, err := policy.Compile(policy.Config{
		Roots:  []policy.Root{{Name: "project"}},
		Layers: []policy.Layer{policy.Default()},
	})
	if err != nil {
		return nil, err
	}
	state, err := enforce.OpenState(stateDir)
	if err != nil {
		return nil, err
	}
	return enforce.New(enforce.Options{
		Workspace: workspace, Decider: decider, Recorder: state, Locker: state,
		Subject: core.Subject{Agent: "my-agent", Source: "my-host", Level: core.LevelSDK},
	})
}

// demo is a folder with a file and a secret in it.
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

// The guarded file system is an io/fs file system with mutations.
func ExampleGate_FS() {
	gate, err := openGate(demo())
	if err != nil {
		panic(err)
	}
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
	gate, err := openGate(demo())
	if err != nil {
		panic(err)
	}
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
	gate, err := openGate(demo())
	if err != nil {
		panic(err)
	}
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
