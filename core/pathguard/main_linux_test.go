// SPDX-License-Identifier: Apache-2.0

package pathguard_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// childEnv says what a re-executed test binary is: "" the tests themselves.
const childEnv = "PATHGUARD_CHILD"

func TestMain(m *testing.M) {
	switch mode := os.Getenv(childEnv); mode {
	case "":
		goleak.VerifyTestMain(m)
	case "attack":
		attackForever(os.Args[1:])
	default:
		if err := confine(mode); err != nil {
			fmt.Fprintln(os.Stderr, "confine:", err)
			os.Exit(97)
		}
		os.Exit(m.Run())
	}
}
