// SPDX-License-Identifier: Apache-2.0

// Package config reads policy files: YAML to a policy.Policy, the roots and
// the settings. docs/policy.md is for the reader of such a file,
// policies/default.yaml and schema/policy.schema.json have every key.
//
// Layers are the system's file (/etc/postern/policy.yaml), the user's
// ($XDG_CONFIG_HOME/postern/policy.yaml, or the file of --policy in its
// place) and .postern/policy.yaml in each root. The shipped default speaks
// where neither the system nor the user does. A project's file only tightens,
// and about files only for its own root.
//
// Where two files state a setting the user's holds, except that the stricter
// one does for envelope, audit.reads, screen.strict, tools.off, egress.ports
// and limits.
//
// Paths of roots: `~` at the front is the home folder, `.` alone is the folder
// given on the command line (or the working directory), any other relative
// path starts at the policy file's folder.
//
// # Guarantees
//
// Strict: a key, root, tool or example that means nothing is an error, and so
// is a pattern for a root that isn't there; what means something and has no
// effect yet is a warning. Nothing is ignored in silence and nothing guessed.
// Each error has a place, the source line and a caret, and all errors of a file
// come at once. Environment and clock are passed in. A file that others can write
// or replace is refused, except a project's, which can't loosen anything.
//
// # Not guaranteed
//
// A root's path is not resolved here; pathguard does that when it opens it.
package config
