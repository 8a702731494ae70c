// SPDX-License-Identifier: Apache-2.0

//go:build race

package audit

// raceDetector makes processes so slow that what many of them do is done less
// often with it. "make bounds" runs without it.
const raceDetector = true
