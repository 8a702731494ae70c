// SPDX-License-Identifier: Apache-2.0

// Package bench times postern as a whole process beside the reference
// filesystem server from npm, over stdio, with one small client for both:
//
//	POSTERN_NPM=DIR go test -run '^$' -bench . ./bench
//
// Compare only figures of one run: machines differ and are shared.
package bench
