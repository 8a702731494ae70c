// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"context"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/core/untrusted"
)

// Handler is a tool author's own code. Args are the decoded arguments as the
// protocol library hands them over; Paths of the call holds what the guarded
// parameters were judged to mean.
type Handler func(ctx context.Context, call ToolCall) (any, error)

// ToolCall is a call whose guarded parameters have been judged.
type ToolCall struct {
	Args map[string]any
	// Paths has the canonical names of each guarded parameter that the call
	// gives, in their order.
	Paths map[string][]pathguard.Name
}

// Param declares that a parameter holds a path, or a list of paths, and for
// what the handler uses it.
type Param struct {
	name   string
	root   string
	action core.Action
}

// Project declares a parameter whose paths lie beneath the root "project".
func Project(param string, use core.Action) Param { return Param{param, "project", use} }

// User declares a parameter whose paths lie beneath the root "user".
func User(param string, use core.Action) Param { return Param{param, "user", use} }

// AnyRoot declares a parameter whose paths lie beneath any root.
func AnyRoot(param string, use core.Action) Param { return Param{param, "", use} }

// Tool names what is guarded: the server and tool that rules address, and the
// class, which raises what the rules for classes say of it.
type Tool struct {
	Server, Name string
	Class        core.Class
	// Params are the guarded parameters. A rename declares both its ends.
	Params []Param
}

func (t Tool) resource() core.Resource { return core.File(t.Server, t.Name) }

// Guard returns a handler that judges the tool call and every guarded
// parameter of it before h runs: each path is resolved to its canonical name
// and the strictest decision about all of them holds. A parameter that is
// neither a string nor a list of strings is refused; one that is absent is not
// judged, so h must treat it as absent too.
//
// The level of enforcement is the wrapper's: h opens paths itself, and a
// parameter that isn't declared isn't guarded.
func (g *Gate) Guard(tool Tool, h Handler) Handler {
	return func(ctx context.Context, call ToolCall) (any, error) {
		c := &crossing{action: core.ToolCall, tool: &tool, given: call.Args}
		paths, err := guardedOperands(c, tool.Params, call.Args)
		if err != nil {
			c.begin(g)
			c.operands = nil
			_, err = c.refuse(err)
			return nil, err
		}
		var result any
		var handlerErr error
		c.perform = func(ctx context.Context) error {
			if from, to := c.renameEnds(); from != nil && to != nil {
				if err := c.unchanged(ctx, from.target, from.name); err != nil {
					return err
				}
			}
			judged := ToolCall{Args: call.Args, Paths: map[string][]pathguard.Name{}}
			for i, param := range paths {
				judged.Paths[param] = append(judged.Paths[param], c.operands[i].name)
			}
			result, handlerErr = h(ctx, judged)
			return handlerErr
		}
		c.check = func(ctx context.Context) error { return c.judgeRename(ctx) }
		if _, err = g.cross(ctx, c); handlerErr != nil {
			return result, handlerErr
		}
		return result, err
	}
}

// judgeRename applies the rules of Move to the two ends of a declared rename.
func (c *crossing) judgeRename(ctx context.Context) error {
	from, to := c.renameEnds()
	if from == nil || to == nil {
		return nil
	}
	return c.judgeMove(ctx, from, to)
}

// renameEnds are the one that exists and the one that doesn't.
func (c *crossing) renameEnds() (from, to *operand) {
	for i := range c.operands {
		o := &c.operands[i]
		switch {
		case o.actions[0] != core.FSRename:
		case o.target.Exists():
			from = o
		default:
			to = o
		}
	}
	return from, to
}

// judgeTool judges the call itself by server, tool and class.
func (c *crossing) judgeTool() error {
	if c.tool == nil {
		return nil
	}
	r := c.tool.resource()
	return c.judged(core.ToolCall, r, c.gate.o.Decider.Evaluate(core.Request{
		Subject: c.gate.o.Subject, Action: core.ToolCall, Resource: r, Class: c.tool.Class,
	}))
}

// guardedOperands turns the arguments into operands and says which parameter
// each one comes from.
func guardedOperands(c *crossing, params []Param, args map[string]any) ([]string, error) {
	var from []string
	for _, p := range params {
		v, given := args[p.name]
		if !given {
			continue
		}
		paths, ok := pathsOf(v)
		if !ok {
			return nil, &fault.Error{
				Code: fault.RequestInvalid, Op: core.ToolCall.String(), Resource: p.name,
				Rule: "the parameter is not a path or a list of paths",
			}
		}
		for _, path := range paths {
			c.operands = append(c.operands, p.operand(path))
			from = append(from, p.name)
		}
	}
	return from, nil
}

func pathsOf(v any) ([]string, bool) {
	switch v := v.(type) {
	case string:
		return []string{v}, true
	case []string:
		return v, true
	case []any:
		paths := make([]string, len(v))
		for i, e := range v {
			s, ok := e.(string)
			if !ok {
				return nil, false
			}
			paths[i] = s
		}
		return paths, true
	}
	return nil, false
}

func (p Param) operand(path string) operand {
	o := operand{spelling: path, root: p.root, actions: []core.Action{p.action}, use: useFacts}
	switch p.action {
	case core.FSWrite, core.FSCreate:
		o.use = useTarget
	case core.FSRename, core.FSDelete:
		o.use = useEntry
		if p.action == core.FSRename {
			o.onNew = newNameActions
		}
	default:
	}
	return o
}

// Resolve judges one path for one action and returns its canonical name: the
// imperative form of a guarded parameter, for what declarations don't cover.
func (g *Gate) Resolve(ctx context.Context, p Param, path string) (pathguard.Name, error) {
	c := &crossing{action: p.action, operands: []operand{p.operand(path)}}
	_, err := g.cross(ctx, c)
	return c.operands[0].name, err
}

// Wrap puts text from outside into the envelope that tells a model that it is
// data: once, where the bytes enter. source is the canonical name it comes
// from.
func Wrap(kind untrusted.Kind, source, text string) untrusted.Wrapped {
	return untrusted.Wrap(kind, source, "", text)
}
