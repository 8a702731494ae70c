// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/internal/state/audit"
)

func newLogKey(env *Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "key [flags]",
		Short: "print the line with which anybody can verify this log",
		Example: `  postern log key
  postern log key > laptop.key     then elsewhere:
  postern log verify --dir COPY --key laptop.key`,
		Long: `the name of this log and its public key, as c2sp.org/signed-note has it. it is
no secret. who keeps it elsewhere can tell this log from another one`,
		DisableFlagsInUseLine: true,
		Args:                  exactly(),
		RunE:                  func(*cobra.Command, []string) error { return logKey(env, asJSON) },
		ValidArgsFunction:     cobra.NoFileCompletions,
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

func logKey(env *Env, asJSON bool) error {
	s, err := findLog(env)
	if err != nil {
		return err
	}
	line, err := s.verifierLine("log key")
	if err != nil {
		return err
	}
	if !asJSON && onTerminal(env.Err) {
		fmt.Fprintln(env.Err, "anybody can verify a copy of this log with the line below; it is no secret")
	}
	return answer(env.Out, asJSON, struct {
		document
		Verifier string `json:"verifier"`
	}{newDocument("log-key"), line}, func(w io.Writer) { fmt.Fprintln(w, line) })
}

// verifierLine is that of the state directory.
func (s *logState) verifierLine(op string) (string, error) {
	line, err := audit.VerifierLine(s.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", s.keyless(op)
	case err != nil:
		return "", &fault.Error{
			Code: fault.ConfigInvalid, Op: op, Resource: s.dir, Rule: "the key of the log can't be read",
			Hint: "put keys/log back, or give the line with --key", Err: err,
		}
	}
	return line, nil
}

// keyless is the error where there is no key: of a log that has lost it, or of
// none. It is nil where the key is there.
func (s *logState) keyless(op string) error {
	switch {
	case s.key:
		return nil
	case !s.segments && !s.signed:
		return s.noLog(op)
	}
	return &fault.Error{
		Code: fault.AuditBroken, Op: op, Resource: s.dir, Rule: "the key of the log is gone",
		Hint: "put keys/log back, or verify with a line that was kept: postern log verify --key LINE; a person goes on with: postern log anchor --renew",
	}
}

// noLog is the error where a log is needed: none is not an empty one.
func (s *logState) noLog(op string) error {
	return &fault.Error{
		Code: fault.PathMissing, Op: op, Rule: "there is no log yet in " + textsafe.Name(s.dir),
		Hint: "postern init attaches agents, whose calls begin one; POSTERN_STATE says where it is",
	}
}
