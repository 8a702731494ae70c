// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/internal/testenv"
)

// installed is this program under its own name, as a client would start it.
func installed(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "installed") //nolint:usetesting // others can enter it, unlike that of a test
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	program := filepath.Join(dir, "postern")
	if err := copyProgram(program); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return program
}

// initCommand is postern init with a home folder of its own.
func initCommand(program, home string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, append([]string{"init"}, args...)...)
	cmd.Env = []string{asPostern + "=1", "HOME=" + home, "PATH=" + filepath.Dir(program)}
	cmd.Dir = home
	return cmd
}

// terminal is a pseudo-terminal with a process behind it.
type terminal struct {
	t      *testing.T
	master *os.File
	cmd    *exec.Cmd
	shown  strings.Builder
}

func onTerminal(t *testing.T, cmd *exec.Cmd) *terminal {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	master := os.NewFile(uintptr(fd), "ptmx")
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer slave.Close()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = master.Close() })
	return &terminal{t: t, master: master, cmd: cmd}
}

// until reads what is shown until it holds the text.
func (m *terminal) until(text string) {
	m.t.Helper()
	_ = m.master.SetReadDeadline(time.Now().Add(time.Minute))
	buffer := make([]byte, 4096)
	for !strings.Contains(m.shown.String(), text) {
		n, err := m.master.Read(buffer)
		m.shown.Write(buffer[:n])
		if err != nil {
			m.t.Fatalf("%v; shown: %s", err, m.shown.String())
		}
	}
}

// ends types the keys and returns the exit code and all that was shown.
func (m *terminal) ends(keys string) (int, string) {
	m.t.Helper()
	if _, err := io.WriteString(m.master, keys); err != nil {
		m.t.Fatal(err)
	}
	_ = m.master.SetReadDeadline(time.Now().Add(time.Minute))
	_, _ = io.Copy(&m.shown, m.master) // it ends with EIO when the process has
	_ = m.cmd.Wait()                   // the code tells
	return m.cmd.ProcessState.ExitCode(), m.shown.String()
}

// tree is every file beneath a folder with its mode and content, but what
// postern keeps for itself.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == filepath.Join(dir, ".local") {
			return filepath.SkipDir
		}
		info, err := d.Info()
		if err != nil || strings.HasPrefix(d.Name(), ".postern-tmp-") { // what a killed process may leave
			return err
		}
		content := ""
		if info.Mode().IsRegular() {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			content = string(b)
		}
		all[strings.TrimPrefix(path, dir)] = info.Mode().String() + " " + content
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func initFolders(t *testing.T) (home, project string) {
	t.Helper()
	home = t.TempDir()
	project = filepath.Join(home, "project")
	put(t, filepath.Join(project, ".cursor/mcp.json"), "{\n\t// mine\n\t\"mcpServers\": {},\n}\n")
	put(t, filepath.Join(project, ".vscode/settings.json"), "{}")
	put(t, filepath.Join(home, ".codex/config.toml"), "model = 'm'\n")
	return home, project
}

func TestInitOnTerminal(t *testing.T) {
	program := installed(t)
	for name, tt := range map[string]struct {
		keys    string
		code    int
		says    string
		changes bool
	}{
		"yes":       {"y\n", 0, "undo: postern init --undo", true},
		"no":        {"n\n", 4, "nothing was changed", false},
		"nothing":   {"\n", 4, "nothing was changed", false},
		"ctrl-c":    {"\x03", 130, "interrupted", false},
		"ctrl-d":    {"\x04", 4, "nothing was changed", false},
		"escape":    {"\x1b[A\n", 4, "nothing was changed", false},
		"long word": {strings.Repeat("y", 2000) + "\n", 4, "nothing was changed", false},
	} {
		home, project := initFolders(t)
		before := tree(t, home)
		m := onTerminal(t, initCommand(program, home, project))
		m.until("write 5 files? [y/N] ")
		if n := strings.Count(m.shown.String(), "Index: .cursor/mcp.json"); n != 1 {
			t.Errorf("%s: the diff is shown %d times", name, n)
		}
		code, shown := m.ends(tt.keys)
		if code != tt.code || !strings.Contains(shown, tt.says) {
			t.Errorf("%s: exit %d: %s", name, code, shown)
		}
		if changed := cmp.Diff(before, tree(t, home)) != ""; changed != tt.changes {
			t.Errorf("%s: changed %t", name, changed)
		}
	}
}

// What was shown is what is written: a file that is another one by then is
// refused, and so is one that has appeared.
func TestInitChangedMeanwhile(t *testing.T) {
	program := installed(t)
	for name, change := range map[string]func(project string) error{
		"content": func(project string) error {
			return os.WriteFile(filepath.Join(project, ".cursor/mcp.json"), []byte("{}"), 0o600)
		},
		"a link": func(project string) error {
			path := filepath.Join(project, ".cursor/mcp.json")
			return os.Rename(path, path+".old")
		},
		"a new file": func(project string) error {
			return os.WriteFile(filepath.Join(project, ".vscode/mcp.json"), []byte("{}"), 0o600)
		},
	} {
		home, project := initFolders(t)
		m := onTerminal(t, initCommand(program, home, project))
		m.until("[y/N] ")
		if err := change(project); err != nil {
			t.Fatal(err)
		}
		if name == "a link" {
			path := filepath.Join(project, ".cursor/mcp.json")
			if err := os.Symlink(path+".old", path); err != nil {
				t.Fatal(err)
			}
		}
		before := tree(t, home)
		code, shown := m.ends("y\n")
		if code == 0 || !strings.Contains(shown, "because: ") {
			t.Errorf("%s: exit %d: %s", name, code, shown)
		}
		if diff := cmp.Diff(before, tree(t, home)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// Whenever it is killed, undo takes out what there is.
func TestInitKilled(t *testing.T) {
	program := installed(t)
	between := 0
	for i := range 60 {
		home, project := initFolders(t)
		before := tree(t, home)
		cmd := initCommand(program, home, "--yes", "--client", "cursor", "--client", "codex", "--client", "vscode", "--client", "kiro", "--client", "gemini-cli", project)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for range 2000 { // it is killed once the first file is there, or after a while
			if _, err := os.Lstat(filepath.Join(project, ".postern")); err == nil {
				break
			}
			time.Sleep(100 * time.Microsecond)
		}
		time.Sleep(time.Duration(i) * 50 * time.Microsecond)
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()         // killed or not
		left := tree(t, home)
		if _, last := left["/project/.gemini/settings.json"]; !last && len(left) > len(before) {
			between++
		}
		out, err := initCommand(program, home, "--undo", "--yes", project).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if diff := cmp.Diff(before, tree(t, home)); diff != "" {
			t.Fatalf("killed after %d: %s\n%s", i, diff, out)
		}
	}
	if between == 0 {
		t.Error("it was never killed between two files: this run shows nothing")
	}
}

// An ordinary user attaches; what that user may not write is refused, and then
// nothing is.
func TestInitUnprivileged(t *testing.T) {
	if os.Geteuid() != 0 {
		testenv.Missing(t, "root, to become another user")
	}
	program := installed(t)
	home, err := os.MkdirTemp("", "home") //nolint:usetesting // others can enter it, unlike that of a test
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	project := filepath.Join(home, "project")
	put(t, filepath.Join(project, ".cursor/mcp.json"), "{}\n")
	put(t, filepath.Join(home, ".codex/config.toml"), "model = 'm'\n")
	if err := filepath.WalkDir(home, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chown(path, nobody, nobody)
	}); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (int, string) {
		cmd := initCommand(program, home, args...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil {
			t.Fatal(err)
		}
		return cmd.ProcessState.ExitCode(), string(out)
	}
	before := tree(t, home)
	for _, closed := range []string{filepath.Join(home, ".codex"), filepath.Join(project, ".cursor"), project} {
		if err := os.Chmod(closed, 0o555); err != nil {
			t.Fatal(err)
		}
		if code, out := run("--yes", project); code == 0 || !strings.Contains(out, "next: ") {
			t.Errorf("%s: exit %d: %s", closed, code, out)
		}
		if err := os.Chmod(closed, 0o755); err != nil { //nolint:gosec // as it was
			t.Fatal(err)
		}
		after := tree(t, home)
		delete(after, closed)
		for path := range after {
			if _, was := before[path]; !was {
				t.Errorf("%s: %s was made", closed, path)
			}
		}
	}
	if code, out := run("--yes", project); code != 0 {
		t.Errorf("exit %d: %s", code, out)
	}
	if code, out := run("--yes", "--undo", project); code != 0 {
		t.Errorf("exit %d: %s", code, out)
	}
	if diff := cmp.Diff(before, tree(t, home)); diff != "" {
		t.Error(diff)
	}
}
