// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/internal/state/undo"
	"github.com/postern-gate/postern/internal/testenv"
)

// victims is what a process is killed in the midst of. Those that begin with
// "undo" take back what was done before.
func victims(t *testing.T) map[string]mutation {
	all := mutations(t.Context())
	for _, same := range []string{"write link", "edit shows", "move to", "move writes", "move dir to", "move unreadable", "launder by move", "launder a delete", "copy to", "launder by copy", "mkdir"} {
		delete(all, same)
	}
	for name, m := range maps.Clone(all) {
		all["undo "+name] = m
	}
	return all
}

// TestUndoVictim is the process that is killed.
func TestUndoVictim(t *testing.T) {
	dir, stateDir, name := os.Getenv("VICTIM_ROOT"), os.Getenv("VICTIM_STATE"), os.Getenv("VICTIM_DOES")
	if dir == "" {
		return // it is only of use to TestUndoKilled
	}
	w := &undoWorld{world: &world{t: t, dir: dir}}
	w.openState(stateDir)
	if name == fullJournals {
		w.bound(stateDir)
		marker()
		w.write("last", "new")
		return
	}
	m := victims(t)[name]
	if !strings.HasPrefix(name, "undo ") {
		marker()
		_, err := m.do(w.gate, Call{Confirm: true})
		w.must(err)
		return
	}
	out, err := m.do(w.gate, Call{Confirm: true})
	w.must(err)
	w.must(os.WriteFile(filepath.Join(filepath.Dir(stateDir), "changed"), []byte(fmt.Sprintf("%q", w.files())), 0o600))
	marker()
	w.undone(UndoSelect{ID: out.UndoID})
}

func marker() { _, _ = unix.Getpgid(0) }

func (w *undoWorld) openState(stateDir string) {
	w.t.Helper()
	state, err := OpenState(stateDir, StateOptions{})
	w.must(err)
	w.t.Cleanup(func() { _ = state.Close() })
	root, err := pathguard.OpenRoot(w.dir, pathguard.Options{Name: "project"})
	w.must(err)
	w.t.Cleanup(func() { _ = root.Close() })
	ws, err := pathguard.NewWorkspace(root)
	w.must(err)
	w.state = state
	w.gate, err = New(Options{Workspace: ws, Decider: rules{}, Recorder: state, Locker: state, Keeper: state})
	w.must(err)
}

// TestUndoKilled kills a process at every system call by which a change, or an
// undo, has an effect. The tree is then what it was before or what it should
// become, nothing of ours is left in it after the next start, the journal says
// which of the two it is, and what it says is done can be undone.
func TestUndoKilled(t *testing.T) {
	for place, at := range places(t) {
		for name := range victims(t) {
			if place != "beside" && !copies[strings.TrimPrefix(name, "undo ")] {
				continue // nothing is different there, or nothing is kept
			}
			t.Run(place+"/"+name, func(t *testing.T) {
				k := killing{t: t, name: name, at: at}
				before, after := k.whole()
				points := 0
				for ; k.once(points, before, after); points++ {
				}
				if points < 4 {
					t.Errorf("killed at %d points only", points)
				}
			})
		}
	}
}

// copies are the changes of which a copy is kept where nothing can be moved.
var copies = map[string]bool{"write": true, "edit": true, "create": true, "delete": true, "delete empty": true}

type killing struct {
	t    *testing.T
	name string
	at   func(*testing.T) string
}

func (k *killing) world() (*undoWorld, string) {
	w := &undoWorld{world: &world{t: k.t, dir: filepath.Join(k.t.TempDir(), "root")}}
	w.must(os.Mkdir(w.dir, 0o755))
	for name, content := range victimTree {
		w.put(name, content)
	}
	return w, k.at(k.t)
}

// whole is the tree before and after when nobody is killed.
func (k *killing) whole() (before, after map[string]string) {
	w, stateDir := k.world()
	before = w.contents()
	w.openState(stateDir)
	out, err := victims(k.t)[k.name].do(w.gate, Call{Confirm: true})
	w.must(err)
	after = w.contents()
	if strings.HasPrefix(k.name, "undo ") {
		w.undone(UndoSelect{ID: out.UndoID})
		return after, before
	}
	return before, after
}

// once kills at one point, and is false when the process came to its end.
func (k *killing) once(point int, before, after map[string]string) bool {
	w, stateDir := k.world()
	if !k.run(w.dir, stateDir, point) {
		return false
	}
	w.openState(stateDir)
	w.must(w.state.Recover(w.t.Context()))
	now := w.contents()
	isOld, isNew := maps.Equal(now, before), maps.Equal(now, after)
	list, _, _, err := w.state.UndoList("", -1)
	w.must(err)
	var state string
	for _, e := range list {
		if e.Undoes == strings.HasPrefix(k.name, "undo ") {
			state = e.State
			break
		}
	}
	partly := strings.Contains(k.name, "copy dir") || strings.Contains(k.name, "mkdir")
	switch {
	case isNew && state == UndoReady, isOld && state == "":
	case isNew && state == UndoAttention && k.makes(): // who made the folder can't be told
		return true
	case partly && !isOld && !isNew: // some of many names: each for itself
	default:
		w.t.Errorf("killed at %d: the journal says %q, the tree is old %t, new %t: %v", point, state, isOld, isNew, diff(now, before, after))
		return true
	}
	k.takeBack(w, point, before, state)
	return true
}

// makes reports a mutation that makes a folder.
func (k *killing) makes() bool {
	return strings.Contains(k.name, "copy dir") || strings.Contains(k.name, "mkdir") || k.name == "undo delete empty"
}

// takeBack undoes what the journal says is done.
func (k *killing) takeBack(w *undoWorld, point int, before map[string]string, state string) {
	if state == "" {
		return
	}
	list, _, _, err := w.state.UndoList("", -1)
	w.must(err)
	for _, e := range list {
		if e.Undoes != strings.HasPrefix(k.name, "undo ") {
			continue
		}
		_, p := w.undo(UndoSelect{ID: e.ID})
		if k.makes() && slices.ContainsFunc(p.Steps, func(s UndoStep) bool { return s.Problem == UndoAttention }) {
			return // a person looks, at what is left too
		}
		if now := w.contents(); p.Problems() > 0 || !maps.Equal(now, before) {
			w.t.Errorf("killed at %d: it can't be taken back: %+v %v", point, p.Steps, diff(now, before))
		}
		return
	}
}

// fullJournals is a write in whose course the journals are brought to their
// bound.
const fullJournals = "write with full journals"

// bound gives the journals of the process a small one.
func (w *undoWorld) bound(stateDir string) {
	w.t.Helper()
	o := UndoOptions{}.log()
	o.Journals = 8 << 10
	w.state.undo.Close()
	w.state.undo = undo.Open(stateDir, o, w.state.living)
}

// TestUndoBoundKilled kills a process at every system call by which it makes
// the journals smaller. After the next start every change that is listed ended,
// every image has its lines, and the newest can be undone.
func TestUndoBoundKilled(t *testing.T) {
	k := killing{t: t, name: fullJournals, at: stateBeside}
	points := 0
	for ; ; points++ {
		w, stateDir := k.world()
		w.openState(stateDir)
		for i := range 12 { // of each two one gives way
			w.write(fmt.Sprint("f", i/2), fmt.Sprint(i))
			w.delete(fmt.Sprint("f", i/2))
		}
		last := w.write("last", "old")
		w.must(w.state.Close())
		if killed := k.run(w.dir, stateDir, points); !killed {
			break
		}
		k.listed(w, stateDir, last, points)
	}
	if points < 20 {
		t.Errorf("killed at %d points only", points)
	}
}

func (k *killing) listed(w *undoWorld, stateDir, last string, point int) {
	w.openState(stateDir)
	w.must(w.state.Recover(w.t.Context()))
	list, _, damaged, err := w.state.UndoList("", -1)
	w.must(err)
	for _, e := range list {
		if e.State == UndoRunning || e.State == UndoAttention {
			w.t.Errorf("killed at %d: %+v", point, e)
		}
	}
	if len(list) < 2 || damaged > 1 {
		w.t.Errorf("killed at %d: %d changes, %d damaged", point, len(list), damaged)
	}
	x, err := undo.Read(stateDir)
	w.must(err)
	known := map[string]bool{}
	for _, t := range x.Txns {
		for _, e := range t.Steps {
			known[e.Image] = true
		}
	}
	images, err := os.ReadDir(filepath.Join(stateDir, "undo", "images"))
	w.must(err)
	for _, image := range images {
		if !known[image.Name()] {
			w.t.Errorf("killed at %d: the image %s has lost its lines", point, image.Name())
		}
	}
	if w.read("last") == "new" {
		w.undone(UndoSelect{Last: true})
	}
	if w.read("last") != "old" {
		w.t.Errorf("killed at %d: %q", point, w.read("last"))
	}
	w.undone(UndoSelect{ID: last})
}

func diff(now map[string]string, others ...map[string]string) (all []string) {
	for i, o := range others {
		for _, path := range sortedKeys(now, o) {
			if now[path] != o[path] {
				all = append(all, fmt.Sprintf("%d %s: %q for %q", i, path, now[path], o[path]))
			}
		}
	}
	return all
}

// syscallInfo is struct ptrace_syscall_info of linux/ptrace.h.
type syscallInfo struct {
	op   uint8
	_    [3]uint8
	arch uint32
	_    [2]uint64
	nr   uint64
	args [6]uint64
}

const (
	ptraceGetSyscallInfo = 0x420e
	syscallEntry         = 1
)

// effects are the calls by which something changes.
var effects = []uint64{
	unix.SYS_RENAMEAT2, unix.SYS_RENAMEAT, unix.SYS_LINKAT, unix.SYS_UNLINKAT, unix.SYS_MKDIRAT, unix.SYS_FTRUNCATE,
	unix.SYS_WRITE, unix.SYS_PWRITE64, unix.SYS_FDATASYNC, unix.SYS_FSYNC, unix.SYS_FCHMOD, unix.SYS_UTIMENSAT,
}

// run starts the victim and kills it at the point-th effect after its marker. It
// is false when there were fewer.
func (k *killing) run(dir, stateDir string, point int) bool {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.Command(os.Args[0], "-test.run=^TestUndoVictim$")
	cmd.Env = append(os.Environ(), "VICTIM_ROOT="+dir, "VICTIM_STATE="+stateDir, "VICTIM_DOES="+k.name, "GOMAXPROCS=2")
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := cmd.Start(); err != nil {
		testenv.Missing(k.t, "ptrace: "+err.Error())
	}
	pid := cmd.Process.Pid
	var ws unix.WaitStatus
	if _, err := unix.Wait4(pid, &ws, 0, nil); err != nil || !ws.Stopped() {
		k.t.Fatalf("%v %v", err, ws)
	}
	const options = unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_EXITKILL
	if err := unix.PtraceSetOptions(pid, options); err != nil {
		testenv.Missing(k.t, "ptrace: "+err.Error())
	}
	_ = unix.PtraceSyscall(pid, 0)
	began, seen := false, 0
	for {
		tid, err := unix.Wait4(-1, &ws, unix.WALL, nil)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			k.t.Fatal(err)
		case ws.Exited() || ws.Signaled():
			if tid == pid {
				if ws.Exited() && ws.ExitStatus() != 0 {
					k.t.Fatalf("the victim failed: %d", ws.ExitStatus())
				}
				return ws.Signaled()
			}
			continue
		}
		signal := 0
		switch s := ws.StopSignal(); {
		case s == syscall.SIGTRAP|0x80:
			if info, ok := entered(tid); ok {
				began = began || info.nr == unix.SYS_GETPGID
				if began && slices.Contains(effects, info.nr) {
					if seen == point {
						_ = unix.Kill(pid, unix.SIGKILL)
					}
					seen++
				}
			}
		case s != syscall.SIGTRAP && s != syscall.SIGSTOP:
			signal = int(s)
		}
		_ = unix.PtraceSyscall(tid, signal)
	}
}

func entered(tid int) (info syscallInfo, ok bool) {
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, ptraceGetSyscallInfo, uintptr(tid), unsafe.Sizeof(info), uintptr(unsafe.Pointer(&info)), 0, 0)
	return info, errno == 0 && info.op == syscallEntry
}
