// SPDX-License-Identifier: Apache-2.0

// Command postern is the guarded gate between AI agents and a person's machine.
package main

import (
	"os"

	"github.com/postern-gate/postern/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], cli.System()))
}
