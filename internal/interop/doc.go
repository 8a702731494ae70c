// SPDX-License-Identifier: Apache-2.0

// Package interop holds postern against programs that we did not write: the
// official MCP clients, the Inspector and the reference filesystem server, all
// from npm. POSTERN_NPM names the folder in which npm/package.json is
// installed; without it the tests are skipped, and under POSTERN_CI=1 they
// fail.
package interop
