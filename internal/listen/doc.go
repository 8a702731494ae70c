// SPDX-License-Identifier: Apache-2.0

// Package listen opens every TCP listener of postern and judges each request
// before a handler sees it. A web page that a person visits can send requests
// to their own machine, directly or by rebinding a name; a program of somebody
// else on the machine can too. So a request needs an exact Host, no Origin, and
// the token.
//
// # Guarantees
//
// A handler sees a request only if all of this holds: Host is one of the
// listener's own names with its port, byte for byte; there is no Origin, unless
// it is listed, and then exactly one; the target is a path, so neither CONNECT,
// an absolute form nor *; there is no Upgrade; Authorization is there once and
// holds the token. The token is compared in constant time, and a refusal says
// nothing of how it differed. Of a listener for a page a session takes the place
// of the token: then there is no Authorization, and what isn't read by GET or
// HEAD names the listener's own origin. The body is cut at a limit. No answer allows another
// origin to read it, sets a cookie or may be kept by a cache.
//
// An address that isn't of this machine alone is listened on only with Expose.
// Headers, idle connections and their number are limited. A body that was only
// announced holds no answer back, and its connection ends after Linger.
//
// # Not guaranteed
//
// Nothing is encrypted: with Expose, whoever can read the network reads the
// token. A program of the same user can read it from the state directory.
// Connections that never say who they are can use up MaxConns for as long as
// HeaderTimeout.
package listen
