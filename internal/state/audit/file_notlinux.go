// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package audit

import "os"

func dataSync(file *os.File) error { return file.Sync() }
