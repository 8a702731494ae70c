// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/enforce"
	"github.com/postern-gate/postern/internal/prompt"
	"github.com/postern-gate/postern/internal/spell"
	"github.com/postern-gate/postern/internal/state/grant"
)

// byCommand and byTerminal are how the records name an answer.
const (
	byCommand  = "command"
	byTerminal = "terminal"
)

// lookAtGrants is the store for verbs that only look. Nothing is made: a state
// directory that is absent has no questions.
func lookAtGrants(env *Env) (*grant.Store, error) {
	dir, err := stateToRead(env)
	if err != nil {
		return nil, err
	}
	return grant.Open(dir, grant.Options{}), nil
}

// openGrants is the store for verbs that decide, which is recorded. A policy
// that isn't valid keeps nobody from taking something back; the names of files
// are then recorded as hashes, since nobody knows that they may be told.
//
// begin says that the state directory may be made: a watch begins before the
// first question.
func openGrants(env *Env, begin bool) (*enforce.State, error) {
	dir, err := enforce.LocateState(env.Getenv)
	if err != nil {
		return nil, err
	}
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) && !begin {
		return nil, &fault.Error{
			Code: fault.RequestInvalid, Op: "postern", Resource: dir, Rule: "there is no state directory, so nothing was ever asked", Hint: "postern status",
		}
	}
	kept := enforce.StateOptions{HashedPaths: true}
	if w, err := new(options).loadHere(env); err == nil {
		kept = stateOptions(w.live.Current())
	}
	state, err := enforce.OpenState(dir, kept)
	if err != nil {
		return nil, err
	}
	return state, nil
}

// deskOf is the questions of a state directory, for a person at a terminal.
func deskOf(state *enforce.State) *prompt.Desk {
	return &prompt.Desk{Store: state.Grants(byTerminal), Since: state.Since}
}

// deciding runs what decides something, and writes its record before it ends.
func deciding(env *Env, begin bool, do func(*prompt.Desk) error) error {
	state, err := openGrants(env, begin)
	if err != nil {
		return err
	}
	return errors.Join(do(deskOf(state)), state.Close())
}

// agentMarks are what agents set for the programs that they start.
var agentMarks = []string{"CLAUDECODE", "CODEX_SANDBOX", "CODEX_THREAD_ID", "CODEX_SANDBOX_NETWORK_DISABLED", "GEMINI_CLI", "CURSOR_AGENT", "OPENCODE"}

// agentMark names the variable by which an agent's own shell is known, "" for
// none. An agent that takes it away is not known by it.
func agentMark(env *Env) string {
	for _, name := range agentMarks {
		if env.Getenv(name) != "" {
			return name
		}
	}
	return ""
}

// aPerson refuses to take a flag for a person's word in an agent's own shell.
func aPerson(env *Env, op string) error {
	mark := agentMark(env)
	if mark == "" {
		return nil
	}
	cant := "an agent can't approve what it asked for"
	if op == "undo" || op == "log anchor --renew" || strings.HasPrefix(op, opInit) {
		cant = "an agent can't answer for a person"
	}
	return &fault.Error{
		Code: fault.PolicyDenied, Op: op, Rule: mark + " is set: this is an agent's own shell, and " + cant,
		Hint: "a person runs it in a terminal of their own",
	}
}

// personAt opens the terminal that the person is at.
func personAt(env *Env, op, instead string) (*prompt.Terminal, error) {
	if env.Terminal != nil {
		if t, err := env.Terminal(); err == nil {
			return t, nil
		}
	}
	if err := aPerson(env, op); err != nil {
		return nil, err
	}
	return nil, &fault.Error{Code: fault.PolicyAsk, Op: op, Rule: "a person has to say yes to it, and there is no terminal", Hint: instead}
}

// questionJSON is a question as --json tells it.
type questionJSON struct {
	ID         string          `json:"id"`
	Corr       string          `json:"corr"`
	Agent      string          `json:"agent"`
	Session    string          `json:"session"`
	Folders    []folderJSON    `json:"folders"`
	Server     string          `json:"server"`
	Tool       string          `json:"tool"`
	Class      string          `json:"class"`
	Operations []operationJSON `json:"operations"`
	More       int             `json:"more"`
	Because    string          `json:"because"`
	Change     string          `json:"change"`
	Unshown    string          `json:"unshown"`
	Alike      []string        `json:"alike"` // the ids of questions to look at together with it
	Details    []grant.Field   `json:"details"`
	Says       []grant.Field   `json:"says"`
	Undo       string          `json:"undo"`
	Asked      time.Time       `json:"asked"`
	Deadline   time.Time       `json:"deadline"`
	Card       string          `json:"card"`
	Digest     string          `json:"card_sha256"`
	Code       string          `json:"code"`
}

type operationJSON struct {
	Action   string `json:"action"`
	Resource string `json:"resource"`
}

func operations(b *grant.Binding) []operationJSON {
	all := []operationJSON{}
	for _, o := range b.Operations {
		all = append(all, operationJSON{o.Action, o.Resource})
	}
	return all
}

func questionOf(q *grant.Question) questionJSON {
	c := prompt.Draw(q)
	return questionJSON{
		Alike:   []string{},
		Folders: folders(&q.For), ID: q.ID, Corr: q.Corr, Agent: q.For.Agent, Session: q.For.Session, Server: q.For.Server, Tool: q.For.Tool,
		Class: q.For.Class, Operations: operations(&q.For), More: q.For.More, Because: q.Card.Rule, Change: q.Card.Change, Unshown: q.Card.Unshown,
		Details: append([]grant.Field{}, q.Card.Details...), Says: append([]grant.Field{}, q.Card.Says...), Undo: q.Card.Undo,
		Asked: q.Asked.Wall.UTC(), Deadline: q.Deadline().UTC(), Card: c.Text, Digest: c.Digest, Code: c.Code,
	}
}

// grantJSON is an answer as --json tells it.
type grantJSON struct {
	ID         string          `json:"id"`
	Corr       string          `json:"corr"`
	Kind       grant.Kind      `json:"kind"`
	Agent      string          `json:"agent"`
	Session    string          `json:"session"`
	Folders    []folderJSON    `json:"folders"`
	Server     string          `json:"server"`
	Tool       string          `json:"tool"`
	Operations []operationJSON `json:"operations"`
	Pattern    string          `json:"pattern"`
	Covers     string          `json:"covers"`
	Given      time.Time       `json:"given"`
	Deadline   time.Time       `json:"deadline"`
	Approver   string          `json:"approver"`
	Digest     string          `json:"card_sha256"`
}

func grantOf(g *grant.Grant) grantJSON {
	return grantJSON{
		Folders: folders(&g.For), ID: g.ID, Corr: g.Corr, Kind: g.Kind, Agent: g.For.Agent, Session: g.For.Session, Server: g.For.Server, Tool: g.For.Tool,
		Operations: operations(&g.For), Pattern: g.Pattern, Covers: g.Covers, Given: g.Given.Wall.UTC(), Deadline: g.Deadline().UTC(),
		Approver: g.Approver, Digest: g.Shown,
	}
}

type folderJSON struct {
	Name string `json:"name"`
	Path string `json:"path"`
}

func folders(b *grant.Binding) []folderJSON {
	all := []folderJSON{}
	for _, r := range b.Roots {
		all = append(all, folderJSON{r.Name, r.Path})
	}
	return all
}

// where is the folders of a binding on one line, "" for none.
func where(b *grant.Binding) string {
	var all []string
	for _, r := range b.Roots {
		all = append(all, spell.Name(r.Path))
	}
	if len(all) == 0 {
		return ""
	}
	return " in " + strings.Join(all, " and ")
}

// what is the operations of a binding on one line.
func what(b *grant.Binding) string {
	var all []string
	for _, o := range b.Operations {
		all = append(all, o.Action+" "+spell.Name(o.Resource))
	}
	const most = 3
	if n := len(all) + b.More; n > most {
		return strings.Join(all[:min(most, len(all))], ", ") + " and " + counted(n-most, "operation") + " more"
	}
	return strings.Join(all, ", ")
}

// noName is an agent without a name where one is shown and typed, so no door may
// have it for one.
const noName = "-"

// agentName is an agent as it is shown and typed; a door may name none.
func agentName(name string) string {
	if name == "" {
		return noName
	}
	return spell.Name(name)
}

// typedAgent is an agent as it is recorded.
func typedAgent(name string) string {
	if name == noName {
		return ""
	}
	return name
}

func ids(env *Env, of func(*grant.Store) []string) []string {
	store, err := lookAtGrants(env)
	if err != nil {
		return nil
	}
	all := of(store)
	slices.Sort(all)
	return all
}

func pendingIDs(s *grant.Store) (all []string) {
	for _, q := range s.Pending() {
		all = append(all, q.ID)
	}
	return all
}

func grantIDs(s *grant.Store) (all []string) {
	for _, g := range s.Grants() {
		all = append(all, g.ID)
	}
	return all
}

// watchGrants shows questions as they come until ctx ends or the person has
// enough: what `postern pending --watch` does, and what a long-running process
// on a terminal can do beside its work.
func watchGrants(ctx context.Context, d *prompt.Desk, t *prompt.Terminal) error {
	err := d.Watch(ctx, t)
	if errors.Is(err, prompt.ErrInterrupted) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
