// SPDX-License-Identifier: Apache-2.0

package pathguard

// ID identifies the root's directory: another one at the same path, or of the
// same name elsewhere, has another.
func (r *Root) ID() (ID, error) {
	dir, err := r.walk("")
	if err != nil {
		return ID{}, err
	}
	defer dir.Close()
	st, err := lookAt(dir, ".")
	return ID{st.dev, st.ino}, err
}
