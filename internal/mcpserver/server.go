// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/internal/mcpwire"
)

// Limits of one server.
const (
	// MaxInFlight is how many calls of one session run or wait at once; the
	// next one is answered with limit.exceeded.
	MaxInFlight = 256
	// MaxSmall and MaxWalk are how many calls of each load run at once.
	MaxSmall = 32
	MaxWalk  = 4
	MaxEdit  = 4
	MaxLarge = 2
	// MaxFrames bounds the sum of the lengths of the frames that one session
	// has in work. The next one is read and waits until there is room; one
	// that is larger goes alone.
	MaxFrames = 128 << 20
	// MaxRoots is how many roots a client may report.
	MaxRoots = 256
	// RootsTimeout is how long a client may take to report its roots.
	RootsTimeout = 10 * time.Second
	// ProgressInterval is the least time between two progress messages of one
	// call; those in between are dropped.
	ProgressInterval = 50 * time.Millisecond
	// ListTTL is how long a client may keep the list of tools, which never
	// changes while a server runs.
	ListTTL = 5 * time.Minute
)

// Load says which calls share a limit. The zero value is Small.
type Load uint8

// The loads: an answer at once, a walk over many files, a change of a whole
// text in memory. Large is for calls that turn out to hold much memory; no tool
// begins with it, see Call.Large.
const (
	Small Load = iota
	Walk
	Edit
	Large
)

// Hints are the annotations of a tool as MCP defines them. Destructive and
// Idempotent mean something only for a tool that isn't ReadOnly.
type Hints struct {
	ReadOnly, Destructive, Idempotent, OpenWorld bool
}

// Tool is one tool. Its texts are ours: nothing from outside may be in them.
type Tool struct {
	Name        string
	Description string
	InputSchema json.RawMessage
	Hints       Hints
	Class       core.Class
	Load        Load
	// Call runs the tool. It must end soon after ctx is done, and may run
	// many times at once.
	Call func(ctx context.Context, call *Call) Result
}

// Config is what a server is made of. Tools and Version are required.
type Config struct {
	Tools        []Tool
	Resources    *Resources // nil: none are offered
	Version      string
	Instructions textsafe.Text
	// Log gets what goes wrong inside; nil discards it. It must not write to
	// the transport.
	Log *slog.Logger
	// Refused, if set, is told of each message that was refused before any
	// tool saw it, so that it can be recorded.
	Refused func(session *Session, refusal *fault.Error)
}

// Server is a table of tools and the limits that its sessions share. It is
// safe for concurrent use.
type Server struct {
	tools     map[string]*Tool
	resources *offer // nil without
	info      []byte // serverInfo
	intro     []byte // capabilities, instructions
	list      []byte // tools
	log       *slog.Logger
	refused   func(*Session, *fault.Error)
	loads     [Large + 1]chan struct{}
	buffers   sync.Pool
	limit     int // of one line, in bytes
	frames    int // of the lines in work, in bytes
}

// New makes a server. It fails on a tool without a name, handler or class, on
// two of one name, and on a schema that is not a JSON object.
func New(c Config) (*Server, error) {
	s := &Server{
		tools: make(map[string]*Tool, len(c.Tools)), log: c.Log, refused: c.Refused,
		limit: mcpwire.MaxFrame, frames: MaxFrames,
	}
	for load, most := range map[Load]int{Small: MaxSmall, Walk: MaxWalk, Edit: MaxEdit, Large: MaxLarge} {
		s.loads[load] = make(chan struct{}, most)
	}
	s.buffers.New = func() any { return new([]byte) }
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.refused == nil {
		s.refused = func(*Session, *fault.Error) {}
	}
	s.info = append(mcpwire.AppendString([]byte(`{"name":"postern","version":`), c.Version), '}')
	var err error
	if s.resources, err = newOffer(c.Resources); err != nil {
		return nil, err
	}
	s.intro = append(s.resources.appendCapability([]byte(`"capabilities":{"tools":{"listChanged":false}`)), '}')
	if text := c.Instructions.String(); text != "" {
		s.intro = mcpwire.AppendString(append(s.intro, `,"instructions":`...), text)
	}
	s.list = []byte(`"tools":[`)
	for i := range c.Tools {
		t := &c.Tools[i]
		if err := t.check(); err != nil {
			return nil, err
		}
		if _, twice := s.tools[t.Name]; twice {
			return nil, fmt.Errorf("two tools are named %q", t.Name)
		}
		s.tools[t.Name] = t
		if i > 0 {
			s.list = append(s.list, ',')
		}
		s.list = t.append(s.list)
	}
	s.list = append(s.list, ']')
	s.intro, s.list = slices.Clip(s.intro), slices.Clip(s.list)
	return s, nil
}

func (t *Tool) check() error {
	if t.Name == "" || t.Call == nil || t.Class == core.ClassUnknown || t.Load >= Large {
		return fmt.Errorf("tool %q is incomplete", t.Name)
	}
	if _, err := mcpwire.NewObject(t.InputSchema); err != nil || t.InputSchema == nil {
		return fmt.Errorf("tool %q: the input schema is not an object", t.Name)
	}
	return nil
}

// append appends the tool as tools/list shows it.
func (t *Tool) append(b []byte) []byte {
	b = mcpwire.AppendString(append(b, `{"name":`...), t.Name)
	b = mcpwire.AppendString(append(b, `,"description":`...), t.Description)
	b = append(append(b, `,"inputSchema":`...), t.InputSchema...)
	b = fmt.Appendf(b, `,"annotations":{"readOnlyHint":%t`, t.Hints.ReadOnly)
	if !t.Hints.ReadOnly {
		b = fmt.Appendf(b, `,"destructiveHint":%t,"idempotentHint":%t`, t.Hints.Destructive, t.Hints.Idempotent)
	}
	b = fmt.Appendf(b, `,"openWorldHint":%t}`, t.Hints.OpenWorld)
	return fmt.Appendf(b, `,"_meta":{"dev.postern/safety_class":"%s"}}`, t.Class)
}

// buffer lends a buffer for one message; keep returns it.
func (s *Server) buffer() *[]byte {
	b, _ := s.buffers.Get().(*[]byte)
	*b = (*b)[:0]
	return b
}

// maxKept is the largest buffer that is kept for the next message.
const maxKept = 256 << 10

func (s *Server) keep(b *[]byte) {
	if cap(*b) <= maxKept {
		s.buffers.Put(b)
	}
}
