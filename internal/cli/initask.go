// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/attach"
	"github.com/postern-gate/postern/internal/prompt"
)

// ask wants a yes from a person on the terminal, never from stdin, which may be
// a program's. What is asked about is shown there too if stdout goes elsewhere. A
// no is an answer and not a refusal, so it is said in one line.
func (r *initRun) ask(ctx context.Context, out *initJSON) error {
	if out.idle() {
		return nil
	}
	if r.yes {
		return aPerson(r.env, r.op())
	}
	in, tty, err := prompt.Files()
	if err != nil {
		return &fault.Error{Code: fault.PolicyAsk, Op: r.op(), Rule: "a person has to say yes to it, and there is no terminal to ask on", Hint: r.unasked()}
	}
	defer in.Close()
	defer tty.Close()
	if !onTerminal(r.env.Out) {
		fmt.Fprint(tty, out.intro(), out.changes())
	}
	fmt.Fprint(tty, out.question(), " [y/N] ")
	line, err := readLine(ctx, in)
	if err != nil {
		fmt.Fprintln(tty)
		return err
	}
	if answer := strings.ToLower(strings.TrimSpace(line)); answer != "y" && answer != "yes" {
		fmt.Fprintln(r.env.Err, "nothing was written: it was not answered with yes")
		return exitCode(fault.ExitAsk)
	}
	return nil
}

// op is what a refusal is about.
func (r *initRun) op() string {
	if r.undo {
		return opInit + " --undo"
	}
	return opInit
}

// unasked is this command line with --yes.
func (r *initRun) unasked() string {
	line := "postern " + r.op() + " --yes"
	for _, id := range r.clients {
		line += " --client " + id
	}
	if r.dir == "." {
		return line
	}
	dir, ok := attach.ShellWord(r.dir)
	if !ok || strings.HasPrefix(dir, "-") {
		return line + " DIR"
	}
	return line + " " + dir
}

// readLine reads one line, or ends with the context: an interrupt is an answer
// too. The end of the input is an empty line.
func readLine(ctx context.Context, in io.Reader) (string, error) {
	lines := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(io.LimitReader(in, 100)).ReadString('\n') // what was typed until then is the answer
		lines <- line
	}()
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case line := <-lines:
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return line, nil
	}
}
