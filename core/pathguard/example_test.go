// SPDX-License-Identifier: Apache-2.0

package pathguard_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
)

// read is what a caller does with a name from an untrusted place: parse it,
// judge the name, open exactly that, and judge again where a link leads.
func read(w *pathguard.Workspace, judge func(pathguard.Name) error, spelling string) (string, error) {
	names, err := w.Parse(spelling)
	if err != nil {
		return "", err
	}
	n := names[0] // with several roots, the one candidate that exists
	for range 40 {
		if err := judge(n); err != nil {
			return "", err
		}
		f, err := n.Open()
		var link *pathguard.LinkError
		if errors.As(err, &link) {
			n = link.To
			continue
		}
		if err != nil {
			return "", err
		}
		defer f.Close()
		all, err := io.ReadAll(f)
		return string(all), err
	}
	return "", &fault.Error{Code: fault.PathSymlink, Resource: spelling}
}

func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	_ = os.Mkdir(filepath.Join(dir, "docs"), 0o755)
	_ = os.WriteFile(filepath.Join(dir, "docs", "a.txt"), []byte("hello"), 0o644)

	root, err := pathguard.OpenRoot(dir, pathguard.Options{Name: "project"})
	if err != nil {
		panic(err)
	}
	defer root.Close()
	w, err := pathguard.NewWorkspace(root)
	if err != nil {
		panic(err)
	}
	judge := func(n pathguard.Name) error {
		fmt.Println("judged:", n)
		return nil
	}
	fmt.Println(read(w, judge, "docs/a.txt"))
	fmt.Println(read(w, judge, "docs/../../etc/passwd"))
	// Output:
	// judged: project://docs/a.txt
	// hello <nil>
	//  docs/../../etc/passwd: the name is not beneath any root
}
