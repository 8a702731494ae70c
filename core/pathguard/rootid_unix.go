// SPDX-License-Identifier: Apache-2.0

//go:build unix

package pathguard

// ID identifies the root's directory: another one at the same path, or of the
// same name elsewhere, has another.
func (r *Root) ID() (ID, error) {
	st, err := Name{root: r}.look()
	return ID{st.dev, st.ino}, err
}
