// SPDX-License-Identifier: Apache-2.0

//go:build unix

package pathguard_test

import (
	"strconv"

	"github.com/postern-gate/postern/core/fault"
)

func codeOf(err error) string { return fault.CodeOf(err).String() }

func decimal(n int64) string { return strconv.FormatInt(n, 10) }
