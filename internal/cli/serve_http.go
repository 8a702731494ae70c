// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/enforce"
	"github.com/postern-gate/postern/internal/listen"
	"github.com/postern-gate/postern/internal/mcpserver"
	"github.com/postern-gate/postern/internal/mcpwire"
	"github.com/postern-gate/postern/internal/state/endpoint"
)

const (
	// mcpPath is where the endpoint is.
	mcpPath = "/mcp"
	// automatic lets postern choose a port, and keep it.
	automatic = "auto"
	// lastWords is how long answers may still be written after calls have ended.
	lastWords = 500 * time.Millisecond
)

// endpointJSON is where a server is reached. The token is in the file.
type endpointJSON struct {
	document
	URL       string   `json:"url"`
	TokenFile string   `json:"token_file"`
	Folders   []string `json:"folders"`
	PID       int      `json:"pid"`
	Exposed   bool     `json:"exposed"`
}

// source is the door as records name it.
func (o *serveOptions) source() string {
	switch {
	case o.http == "":
		return "serve"
	case o.accept == "":
		return "serve-http"
	}
	return "serve-http-exposed"
}

// address is what --http names; port 0 stands for the one that was kept, or one
// that is free.
func (o *serveOptions) address() (netip.AddrPort, error) {
	const op = "postern serve"
	host, port := "127.0.0.1", o.http
	switch {
	case o.http == "" && (o.accept != "" || o.json):
		return netip.AddrPort{}, usage(op, "--accept and --json are about --http", "")
	case o.http == "":
		return netip.AddrPort{}, nil
	case o.http == automatic:
		return netip.MustParseAddrPort(host + ":0"), nil
	}
	if i := strings.LastIndexByte(o.http, ':'); i >= 0 {
		host, port = o.http[:i], o.http[i+1:]
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	n, err := strconv.ParseUint(port, 10, 16)
	address, parsed := netip.ParseAddrPort(host + ":" + port)
	if err != nil || parsed != nil || n == 0 {
		return netip.AddrPort{}, usage(op, "--http is neither a port, an address with a port, nor auto", op+" --http auto")
	}
	return address, listen.Check(address, o.accept != "")
}

// serveHTTP serves until it is interrupted, which is how it ends well.
func (o *serveOptions) serveHTTP(ctx context.Context, env *Env, w *workspace, state *enforce.State, server *mcpserver.Server, address netip.AddrPort) error {
	ctx, interrupt := context.WithCancel(ctx)
	defer interrupt()
	held, err := endpoint.Open(w.stateDir).Hold(ctx, w.folders())
	if err != nil {
		return inUse(err)
	}
	defer held.Release()
	if last, err := netip.ParseAddrPort(held.Last.Address); err == nil && address.Port() == 0 && last.Addr() == address.Addr() {
		address = last
	}
	logger := slog.New(slog.NewTextHandler(env.Err, nil))
	l, err := listen.Open(ctx, address, o.accept != "", logger)
	if err != nil {
		return cannotListen(ctx, held, address, err)
	}
	at := l.Address().String()
	token := held.Token(at, o.accept != "")
	if err := held.Save(at, token, o.accept != ""); err != nil {
		return errors.Join(err, l.Close(ctx))
	}
	stop, err := o.show(ctx, env, w, held.File(), at, token)
	if err != nil {
		if ctx.Err() != nil { // an interrupt is how this ends, also before it has begun
			err = nil
		}
		return errors.Join(err, l.Close(context.WithoutCancel(ctx)))
	}
	defer stop()
	if o.up {
		defer o.outside(ctx, env, w, state)()
		defer o.beside(ctx, env, w, state, interrupt)()
	}
	return serveUntil(ctx, l, server.HTTP(), token)
}

// show says where the server is. As postern up it says before how clients are
// attached, and then, until stop, what is decided.
func (o *serveOptions) show(ctx context.Context, env *Env, w *workspace, file, at, token string) (stop func(), err error) {
	if !o.up {
		return func() {}, o.announce(env, w, file, at, token)
	}
	if !o.json {
		o.entries(ctx, env, w)
	}
	if err := o.announce(env, w, file, at, token); err != nil {
		return nil, err
	}
	return o.watch(ctx, env, w)
}

// serveUntil serves until ctx is done; then calls have their time to end.
func serveUntil(ctx context.Context, l *listen.Server, mcp *mcpserver.HTTP, token string) error {
	served := make(chan error, 1)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != mcpPath { // a ServeMux would redirect what looks like it
			mcp.Elsewhere(w, r)
			return
		}
		mcp.ServeHTTP(w, r)
	})
	go func() {
		served <- l.Serve(handler, listen.Rules{Token: token, MaxBody: mcpwire.MaxFrame, Refused: mcp.Refused})
	}()
	var err error
	select {
	case err = <-served:
		err = &fault.Error{Code: fault.IOFailed, Op: "serve", Rule: "the listener broke", Hint: "start it again", Err: err}
	case <-ctx.Done():
	}
	drain, stop := context.WithTimeout(context.WithoutCancel(ctx), mcpserver.Drain)
	defer stop()
	if !mcp.Close(drain) && err == nil {
		err = mcpserver.ErrDrain
	}
	last, cut := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cut()
	return errors.Join(err, l.Close(last))
}

// folders are the roots by the paths that they have, which make the endpoint.
func (w *workspace) folders() []string {
	var folders []string
	for _, r := range w.Roots() {
		folders = append(folders, r.Resolved())
	}
	return folders
}

// inUse names the process that serves the same folders.
func inUse(err error) error {
	var in *endpoint.InUse
	if !errors.As(err, &in) {
		return err
	}
	f := *fault.As(err)
	f.Rule = "another server has them"
	f.Hint = "use that one, or end it"
	if in.PID != 0 {
		f.Rule = fmt.Sprintf("process %d serves them at http://%s%s", in.PID, textsafe.Clean(in.Address), mcpPath)
		f.Hint = fmt.Sprintf("use that one, or end it: kill %d", in.PID)
	}
	return &f
}

// cannotListen says who has the port, as far as that can be told.
func cannotListen(ctx context.Context, held *endpoint.Held, address netip.AddrPort, err error) error {
	port := strconv.Itoa(int(address.Port()))
	f := &fault.Error{
		Code: fault.IOFailed, Op: "listen", Resource: address.String(), Rule: "the operating system refused the address", Hint: "use another: postern serve --http PORT", Err: err,
	}
	if errors.Is(err, listen.ErrInUse) {
		f.Rule = "another program has the port"
		f.Hint = "use another port, which gets a token of its own: postern serve --http PORT"
		if e, ok := held.Holder(ctx, port); ok {
			f.Rule = fmt.Sprintf("the server of %s has the port, process %d", textsafe.Clean(strings.Join(e.Folders, ", ")), e.PID)
		} else if held.Last.Address == address.String() && held.Last.Token != "" {
			f.Rule += ", and clients may have sent it the token"
			f.Hint = "end that program and start again, or use another port: clients then need the new token"
			if err := held.Forget(); err != nil {
				return err
			}
		}
	}
	return f
}

// announce says where the server is: on stdout for programs, on stderr how to
// attach. The token is shown to a person only; a log has the name of its file.
func (o *serveOptions) announce(env *Env, w *workspace, file, at, token string) error {
	if o.accept != "" {
		fmt.Fprintf(env.Err, "warning: other machines can reach %s, and nothing is encrypted: whoever can read that network reads the token and every answer\n", at)
	}
	url := "http://" + at + mcpPath
	e := endpointJSON{
		document: newDocument("serve"), URL: url, TokenFile: file, Folders: w.folders(), PID: os.Getpid(), Exposed: o.accept != "",
	}
	if o.up && o.json {
		if err := o.upEndpoint(env, w, e); err != nil {
			return err
		}
	} else if err := answer(env.Out, o.json, e, func(out io.Writer) { fmt.Fprintln(out, url) }); err != nil {
		return err
	}
	if !onTerminal(env.Err) {
		fmt.Fprintln(env.Err, "the token is in", textsafe.Name(file))
		return nil
	}
	fmt.Fprintf(env.Err, `attach a client, once: the address and the token of these folders stay
  claude mcp add --transport http postern %s --header "Authorization: Bearer %s"
any other client: type http, that address as its url, and that header
ctrl-c ends it
`, url, token)
	return nil
}
