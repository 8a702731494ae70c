// SPDX-License-Identifier: Apache-2.0

package pathguard

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
)

const (
	fingerprintVersion = 1
	// etagBytes of SHA-256 make 20 characters; 120 bits leave no accident.
	etagBytes = 15
)

// Fingerprint says which state of which file it was: device, inode, size,
// modification and change time in nanoseconds, mode; of a directory also the time
// of birth, which no etag tells. It is comparable; the
// zero value stands for absence and equals no file's.
//
// Not guaranteed: before Linux 6.13, and on file systems without fine-grained
// times, two writes of the same length within one clock tick (1 to 10 ms) give
// equal times.
type Fingerprint struct {
	version      uint8
	mode         uint32
	dev, ino     uint64
	size         int64
	mtime, ctime int64
	born         int64 // of a directory
}

// String is the etag: 20 characters of the URL-safe base64 alphabet after a
// version, "" for absence. Equal fingerprints have equal etags and, but for
// the birth and a collision of SHA-256, the other way round. It tells nothing of its parts.
func (f Fingerprint) String() string {
	if f.version == 0 {
		return ""
	}
	b := make([]byte, 0, 1+4+5*8)
	b = append(b, f.version)
	b = binary.BigEndian.AppendUint32(b, f.mode)
	for _, v := range [...]uint64{f.dev, f.ino, uint64(f.size), uint64(f.mtime), uint64(f.ctime)} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	sum := sha256.Sum256(b)
	return "1" + base64.RawURLEncoding.EncodeToString(sum[:etagBytes])
}
