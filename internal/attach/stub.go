// SPDX-License-Identifier: Apache-2.0

package attach

type file struct {
	path    string
	project bool
}

func (c Client) files(World) []file { return nil }

func (c Client) attachedIn(World, file) ([]Attachment, error) { return nil, nil }
