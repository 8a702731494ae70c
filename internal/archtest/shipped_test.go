// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write deps.txt anew")

// maxShipped bounds what a person downloads and keeps, in bytes.
const maxShipped = 20_000_000

const shippedHead = `# What the binary links, and its size: a change of either is seen in review.
# Written by: go test ./internal/archtest -run TestShipped -update
#
# module, version, and the systems where not all link it
`

const shippedSize = `#
# bytes of the static binary for linux/amd64 with -trimpath -ldflags=-s; within
# a tenth of it nothing needs to be written anew
`

// shipped is what deps.txt says.
type shipped struct {
	modules []string // "path version [systems]", sorted
	size    int64
}

func (s shipped) String() string {
	return shippedHead + strings.Join(s.modules, "\n") + "\n" + shippedSize + "size " + strconv.FormatInt(s.size, 10) + "\n"
}

func parseShipped(text []byte) (shipped, error) {
	var s shipped
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		size, isSize := strings.CutPrefix(line, "size ")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case isSize:
			n, err := strconv.ParseInt(size, 10, 64)
			if err != nil {
				return s, err
			}
			s.size = n
		default:
			s.modules = append(s.modules, line)
		}
	}
	return s, nil
}

// problems compares what is shipped with what is written down.
func (s shipped) problems(written shipped) []string {
	var all []string
	if diff := cmp.Diff(written.modules, s.modules); diff != "" {
		all = append(all, "the binary links other modules than deps.txt says (-written +linked); -update writes it, docs/adr/0006 gives the reason:\n"+diff)
	}
	if off := s.size - written.size; off > written.size/10 || off < -written.size/10 {
		all = append(all, fmt.Sprintf("the binary has %d bytes, deps.txt says %d: more than a tenth off; -update writes it, the commit says why", s.size, written.size))
	}
	if s.size > maxShipped {
		all = append(all, fmt.Sprintf("the binary has %d bytes, %d is the ceiling", s.size, maxShipped))
	}
	return all
}

// linked are the modules of the command by system, from go list.
func linked(t *testing.T) []string {
	t.Helper()
	on := map[string][]string{}
	for _, goos := range systems {
		for _, p := range list(t, goos, "./cmd/postern") {
			if p.Module == nil || p.Module.Main {
				continue
			}
			if name := p.Module.Path + " " + p.Module.Version; !slices.Contains(on[name], goos) {
				on[name] = append(on[name], goos)
			}
		}
	}
	var names []string
	for name, where := range on {
		if len(where) < len(systems) {
			name += " " + strings.Join(where, ",")
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// built is the command as a release builds it, whatever this test is built with.
func built(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "postern")
	cmd := exec.CommandContext(context.Background(), "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s", "-o", binary, "./cmd/postern")
	cmd.Dir = filepath.Join("..", "..")
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "GOAMD64=v1", "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

// TestShipped: what is linked, and how large it is, is written down.
func TestShipped(t *testing.T) {
	binary := built(t)
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	stat, err := os.Stat(binary)
	if err != nil {
		t.Fatal(err)
	}
	now := shipped{linked(t), stat.Size()}
	var onLinux, inBinary []string
	for _, name := range now.modules {
		if f := strings.Fields(name); len(f) == 2 || strings.Contains(f[2], "linux") {
			onLinux = append(onLinux, f[0]+" "+f[1])
		}
	}
	for _, dep := range info.Deps {
		inBinary = append(inBinary, dep.Path+" "+dep.Version)
	}
	if diff := cmp.Diff(onLinux, inBinary); diff != "" {
		t.Errorf("go list and the binary itself differ (-list +binary):\n%s", diff)
	}
	file := filepath.Join("..", "..", "deps.txt")
	if *update {
		if err := os.WriteFile(file, []byte(now.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	written, err := parseShipped(text)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(text, []byte(written.String())) {
		t.Error("deps.txt is not as -update writes it")
	}
	report(t, now.problems(written))
	control(t, shipped{append(slices.Clone(now.modules), "example.com/m v1.0.0"), now.size}.problems(now), 1)
	control(t, shipped{nil, 9_000}.problems(shipped{nil, 8_000}), 1)
	control(t, shipped{nil, 7_000}.problems(shipped{nil, 8_000}), 1)
	control(t, shipped{now.modules, maxShipped + 1}.problems(shipped{now.modules, maxShipped}), 1)
}
