// SPDX-License-Identifier: Apache-2.0

// Package agents runs real coding agents, headless, for tests: Claude Code and
// Codex as they are published, each with a home of its own and a model that a
// test scripts. The model asks for the given tool calls one after another and
// keeps what the agent hands back for each: that is what a real model would
// have been shown.
//
// Nothing leaves the machine: the model listens on loopback, and whatever else
// an agent wants to reach goes to a proxy that refuses and remembers it.
//
// POSTERN_AGENTS names the folder in which ../npm-agents is installed; without
// it tests are skipped, and under POSTERN_CI=1 they fail. The programs come for
// Linux, as do the tests.
package agents
