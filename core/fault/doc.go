// SPDX-License-Identifier: Apache-2.0

// Package fault holds the one error type and the one table of codes: code,
// the source documents' name, sentinel, exit code, HTTP status, JSON-RPC
// number, meaning and next step. docs/errors.md is generated from it.
//
// # Guarantees
//
// A code's string never changes its meaning. The zero Error and any error
// that is not a fault read as a bug, which fails closed. Lines never holds a
// control character, a line break of a name, or the text of a cause.
//
// # Not guaranteed
//
// The table says what a code means, not that a door reports it; each door
// has its own tests.
package fault

//go:generate go test -run TestErrorsPage -update .
