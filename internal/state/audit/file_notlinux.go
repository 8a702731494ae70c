// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package audit

import "os"

func dataSync(file *os.File) error { return file.Sync() }

func allocate(file *os.File, size int) error { return fill(file, size) }
