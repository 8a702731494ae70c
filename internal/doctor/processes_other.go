// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package doctor

import "context"

func checkProcesses(context.Context, *look) []Result {
	return one(skip("which processes have the state directory open can't be seen on this system"))
}
