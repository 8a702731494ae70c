// SPDX-License-Identifier: Apache-2.0

// Package archtest holds the shape of the module as tests: which package may
// import which, what the trust boundary may never reach, who may make a
// wrapped text, open a listener or end the process, and how large things may
// grow. Each rule says why in its failure, and each has a negative control: a
// small made-up package that the rule must find.
package archtest
