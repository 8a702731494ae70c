// SPDX-License-Identifier: Apache-2.0

package pathguard_test

import (
	"strconv"
	"testing"

	"github.com/postern-gate/postern/core/fault"
)

func codeOf(err error) string { return fault.CodeOf(err).String() }

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantCode(t testing.TB, err error, want fault.Code) {
	t.Helper()
	if got := fault.CodeOf(err); got != want {
		t.Errorf("code %v, want %v (%v)", got, want, err)
	}
}
