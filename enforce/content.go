// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"bytes"
	"regexp"
	"sync"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/glob"
	"github.com/postern-gate/postern/core/pathguard"
)

// npmrcHead is how much of a .npmrc is searched. A longer one is refused, since
// its rest could hold what was looked for.
const npmrcHead = 256 << 10

// npmrcSecrets are the keys of npm's configuration whose values are
// credentials (npm docs, npmrc: auth related configuration).
var npmrcSecrets = [][]byte{[]byte("_authtoken"), []byte("_auth"), []byte("_password"), []byte("-----begin")}

// contentRule is the one entry of the list of secrets that a name alone
// doesn't decide: a .npmrc directly in a root is ordinary until it holds a
// credential. Others are denied by name.
func contentRule(r core.Resource, f *pathguard.File) error {
	if !hasContentRule(r) {
		return nil
	}
	buf := make([]byte, npmrcHead+1)
	n, err := f.ReadAt(buf, 0)
	if n <= npmrcHead && !holdsSecret(buf[:n]) {
		if n == 0 && err != nil && f.Size() > 0 {
			return err
		}
		return nil
	}
	return &fault.Error{Code: fault.PolicyDenied, Resource: r.String(), Rule: core.Reason{
		Decision: core.Deny, Step: core.StepDeny, Rule: `deny ".npmrc"`, Builtin: "npmrc", Why: "it holds a credential",
	}.String()}
}

// checkContent applies it to a file that a call names, as soon as it may be read:
// before the yes its answer would tell of the content.
func (c *crossing) checkContent(n pathguard.Name, f *pathguard.File) error {
	if !hasContentRule(n.Resource()) {
		return nil
	}
	if known, err := c.mayRead(n.Resource()); err != nil || !known {
		return err
	}
	return contentRule(n.Resource(), f)
}

func hasContentRule(r core.Resource) bool { return glob.Key(r.Name) == ".npmrc" }

// npmrcPatterns are credentials that have no key of their own: in the address
// of a registry or proxy, and the private key of a client.
var npmrcPatterns = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`//[^/@\s]+:[^/@\s]+@|(?m)^\s*key\s*=`) })

func holdsSecret(content []byte) bool {
	lower := bytes.ToLower(content)
	for _, key := range npmrcSecrets {
		if bytes.Contains(lower, key) {
			return true
		}
	}
	return npmrcPatterns().Match(lower)
}
