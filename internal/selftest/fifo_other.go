// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package selftest

import "errors"

func makeFIFO(string) error { return errors.New("this system has no pipes in folders") }

func readerWaits(string) error { return errors.New("this system has no pipes in folders") }
