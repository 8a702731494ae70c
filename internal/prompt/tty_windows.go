// SPDX-License-Identifier: Apache-2.0

package prompt

// ttyPath is the input of the console.
const ttyPath = "CONIN$"
