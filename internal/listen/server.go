// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"context"
	"errors"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"syscall"
	"time"
)

// Limits of a listener.
const (
	// HeaderTimeout is how long a client may take to say what it wants.
	HeaderTimeout = 10 * time.Second
	// IdleTimeout is how long a connection may be unused.
	IdleTimeout = 2 * time.Minute
	// MaxHeader bounds the headers of one request, in bytes, or a few more.
	MaxHeader = 32 << 10
	// MaxConns is how many connections are open at once; one more is answered
	// with 503 and closed.
	MaxConns = 256
)

// ErrInUse is what Open's error is where another program has the port.
var ErrInUse = errors.New("the port is in use")

// wsaAddrInUse is what Windows says; no other system has such a number.
const wsaAddrInUse = syscall.Errno(10048)

// Server is an open listener.
type Server struct {
	listener net.Listener
	address  netip.AddrPort
	http     *http.Server
}

// Open listens at the address; port 0 is one that is free. See Check for expose.
// Log gets what goes wrong with connections.
func Open(ctx context.Context, address netip.AddrPort, expose bool, log *slog.Logger) (*Server, error) {
	if err := Check(address, expose); err != nil {
		return nil, err
	}
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", address.String())
	if errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, wsaAddrInUse) {
		err = errors.Join(ErrInUse, err)
	}
	if err != nil {
		return nil, err
	}
	bound, err := netip.ParseAddrPort(l.Addr().String())
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &Server{listener: newLimited(l, MaxConns), address: bound, http: newHTTP(log)}, nil
}

func newHTTP(to *slog.Logger) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Server{
		ReadHeaderTimeout: HeaderTimeout, IdleTimeout: IdleTimeout, MaxHeaderBytes: MaxHeader, Protocols: protocols,
		DisableGeneralOptionsHandler: true, ErrorLog: errorLog(to),
	}
}

// errorLog: what net/http has to say about a connection may hold a client's
// bytes; the logger quotes them.
func errorLog(to *slog.Logger) *log.Logger {
	if to == nil {
		to = slog.New(slog.DiscardHandler)
	}
	return slog.NewLogLogger(to.Handler(), slog.LevelWarn)
}

// Address is where the server listens, with the port that it has.
func (s *Server) Address() netip.AddrPort { return s.address }

// Serve serves what the rules allow until Close; its error is then nil. The
// rules' Hosts are those of the address.
func (s *Server) Serve(handler http.Handler, rules Rules) error {
	rules.Hosts = HostsOf(s.address)
	s.http.Handler = Guard(handler, rules)
	if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Close stops to listen, waits until ctx is done for answers that are being
// written, and ends every connection.
func (s *Server) Close(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = s.http.Close()
	}
	if closed := s.listener.Close(); !errors.Is(closed, net.ErrClosed) {
		err = errors.Join(err, closed)
	}
	return err
}

// limited is a listener that turns connections away when there are too many.
type limited struct {
	net.Listener
	places chan struct{}
}

func newLimited(l net.Listener, most int) *limited {
	return &limited{Listener: l, places: make(chan struct{}, most)}
}

const full = "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"

func (l *limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.places <- struct{}{}:
			return &conn{Conn: c, leave: sync.OnceFunc(func() { <-l.places })}, nil
		default:
			// A new connection has room for so little: it isn't waited for.
			_ = c.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
			_, _ = c.Write([]byte(full))
			_ = c.Close()
		}
	}
}

type conn struct {
	net.Conn
	leave func()
}

func (c *conn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
