// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package cli

// primitive names what proves a file's name on this system.
func primitive() string { return componentWalk }
