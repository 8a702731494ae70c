// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/postern-gate/postern/internal/attach"
)

// neverRead is a name that the built-in list denies and no policy can lift.
const neverRead = ".postern-tmp-0000000000000000"

// tryLine runs one entry from its start to a refusal. The server gets a state
// directory of its own, so that this leaves no record behind.
func (l *look) tryLine(ctx context.Context, a attach.Attachment, program string) Result {
	state, err := os.MkdirTemp("", "postern-doctor-")
	if err != nil {
		return skip("%s: a folder for its state can't be made", label(a))
	}
	defer os.RemoveAll(state)
	cmd := exec.CommandContext(ctx, program, a.Args...)
	cmd.Dir = l.World.Project
	cmd.Env = append(environment(), "POSTERN_STATE="+filepath.Join(state, "state"))
	cmd.WaitDelay = time.Second
	var said strings.Builder
	cmd.Stderr = &limitedWriter{to: &said, left: 4 << 10}
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		return fail("postern init", "%s: it can't be started", label(a))
	}
	quiet := context.AfterFunc(ctx, func() { _ = out.Close() }) // a child of it may hold the other end
	err = talk(in, out)
	quiet()
	_ = in.Close()
	_ = cmd.Process.Kill() // by its handle; one that has ended by itself is fine
	_ = cmd.Wait()
	if err != nil {
		text := label(a) + ": " + err.Error()
		if why := spoken(said.String()); why != "" {
			text += ": " + why
		}
		return fail(shellLine(program, a.Args), "%s", text)
	}
	return pass("%s: it starts, offers its tools, and refuses what nobody may read; tried with an empty log of its own", label(a))
}

// environment is what a program is started with: this one's, without what makes a
// loader or a shell take code from a folder. A project's settings may have set it.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return strings.HasPrefix(name, "LD_") || strings.HasPrefix(name, "DYLD_") || name == "BASH_ENV" || name == "ENV"
	})
}

// spoken is what a program said on stderr, in one line: without the pictures of
// a policy's lines, which mean nothing there.
func spoken(said string) string {
	var lines []string
	for line := range strings.Lines(said) {
		number, _, drawn := strings.Cut(line, " | ")
		if line = strings.TrimSpace(line); line != "" && (!drawn || strings.Trim(number, " 0123456789") != "") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "; ")
}

// shellLine is what a person types to see the same. The line comes from a file
// that may be somebody else's: one that a shell would read otherwise than word
// by word is not offered for pasting.
func shellLine(program string, args []string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-=:@%+,"
	words := append([]string{program}, args...)
	for _, w := range words {
		if w == "" || strings.Trim(w, plain) != "" {
			return "run the line of the entry in a shell, once you have looked at it"
		}
	}
	return "run it in a shell: " + strings.Join(words, " ")
}

// limitedWriter keeps the beginning and takes the rest.
type limitedWriter struct {
	to   io.Writer
	left int
}

func (w *limitedWriter) Write(p []byte) (int, error) {
	keep := p[:min(len(p), w.left)]
	w.left -= len(keep)
	if _, err := w.to.Write(keep); err != nil {
		return 0, err
	}
	return len(p), nil
}

// reply is the part of an answer that is looked at.
type reply struct {
	ID     int
	Error  json.RawMessage
	Result struct {
		ServerInfo struct{ Name string }
		Tools      []struct{ Name string }
		IsError    bool
		Content    []struct{ Text string }
		Meta       struct {
			Error struct{ Code string } `json:"dev.postern/error"`
		} `json:"_meta"`
	}
}

const (
	helloLine = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"postern-doctor","version":"1"}}}` + "\n" +
		`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"
	toolsLine   = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}` + "\n"
	foldersLine = `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"list_allowed_directories","arguments":{}}}` + "\n"
	readLine    = `{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"read_text_file","arguments":{"path":%s}}}` + "\n"
)

// talk is a client's first minute.
func talk(in io.Writer, out io.Reader) error {
	lines := bufio.NewScanner(io.LimitReader(out, 4<<20))
	lines.Buffer(nil, 1<<20)
	ask := func(id int, line string) (r reply, err error) {
		if _, err := io.WriteString(in, line); err != nil {
			return r, errors.New("it doesn't answer")
		}
		for lines.Scan() {
			r = reply{}
			if json.Unmarshal(lines.Bytes(), &r) == nil && r.ID == id {
				if r.Error != nil {
					return r, errors.New("it answers with an error")
				}
				return r, nil
			}
		}
		return r, errors.New("it doesn't answer")
	}
	if _, err := ask(1, helloLine); err != nil {
		return err
	}
	tools, err := ask(2, toolsLine)
	if err != nil {
		return err
	}
	if len(tools.Result.Tools) == 0 {
		return errors.New("it offers no tools")
	}
	folders, err := ask(3, foldersLine)
	if err != nil {
		return err
	}
	path, err := json.Marshal(beneath(folders))
	if err != nil {
		return err
	}
	read, err := ask(4, fmt.Sprintf(readLine, path))
	switch {
	case err != nil:
		return err
	case !read.Result.IsError || read.Result.Meta.Error.Code == "":
		return errors.New("what nobody may read was not refused")
	}
	return nil
}

// beneath is the name in the first folder that is told.
func beneath(folders reply) string {
	for _, c := range folders.Result.Content {
		for line := range strings.Lines(c.Text) {
			if line = strings.TrimSpace(line); filepath.IsAbs(line) {
				return filepath.Join(line, neverRead)
			}
		}
	}
	return neverRead
}
