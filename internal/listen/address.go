// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"net/netip"
	"slices"
	"strconv"

	"github.com/postern-gate/postern/core/fault"
)

// Check refuses an address that a listener may not have: one that isn't of this
// machine alone, unless expose says so, and one that stands for all, since then
// nothing says under which names the server is known.
func Check(address netip.AddrPort, expose bool) error {
	ip := address.Addr()
	switch {
	case !ip.IsValid() || ip.Is4In6() || ip.Zone() != "":
		return refusal("it is not an address of IPv4 or IPv6 in its usual form", "write 127.0.0.1:PORT", nil)
	case ip.IsUnspecified():
		return refusal("it stands for every address of this machine", "name the one that clients use", nil)
	case ip.IsLoopback() || expose:
		return nil
	}
	return refusal("other machines can reach it", "use 127.0.0.1, or add --accept=expose", nil)
}

// HostsOf are the values of Host under which a listener at the address is
// known: the address, and localhost for the two that it stands for. One that
// isn't bound is none, since another program may listen there. A client leaves
// the port out when it is 80.
func HostsOf(address netip.AddrPort) []string {
	names := []string{address.Addr().String()}
	if address.Addr().Is6() {
		names[0] = "[" + names[0] + "]"
	}
	if names[0] == "127.0.0.1" || names[0] == "[::1]" {
		names = append(names, "localhost")
	}
	var hosts []string
	for _, name := range names {
		hosts = append(hosts, name+":"+strconv.Itoa(int(address.Port())))
		if address.Port() == 80 {
			hosts = append(hosts, name)
		}
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

func refusal(rule, hint string, err error) error {
	return &fault.Error{Code: fault.RequestInvalid, Op: "listen", Rule: rule, Hint: hint, Err: err}
}
