// SPDX-License-Identifier: Apache-2.0

package glob

// WithoutSieve returns the pattern as it compares when nothing is spared.
func (p Pattern) WithoutSieve() Pattern {
	p.need = sieve{}
	return p
}
