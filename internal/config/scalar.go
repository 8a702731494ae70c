// SPDX-License-Identifier: Apache-2.0

package config

import (
	"math"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// quantity reads digits and one of the units; nothing else is a number here,
// so that no spelling of YAML's (1_000, 0o17, 1e3) is guessed at.
func quantity(s string, units []unit) (int64, bool) {
	digits := strings.TrimRight(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || digits[0] == '+' || digits[0] == '-' || len(digits) > 1 && digits[0] == '0' {
		return 0, false
	}
	for _, u := range units {
		if s[len(digits):] == u.name && n <= math.MaxInt64/u.value {
			return n * u.value, true
		}
	}
	return 0, false
}

type unit struct {
	name  string
	value int64
}

func sizes() []unit {
	return []unit{{"B", 1}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}}
}

func durations() []unit {
	return []unit{
		{"ms", int64(time.Millisecond)},
		{"s", int64(time.Second)},
		{"m", int64(time.Minute)},
		{"h", int64(time.Hour)},
		{"d", int64(24 * time.Hour)},
	}
}

func (d *decoder) size(n *yaml.Node, what string) (int64, bool) {
	return d.quantity(n, what, "a size, as 64MiB (units B, KiB, MiB, GiB, TiB)", sizes())
}

func (d *decoder) duration(n *yaml.Node, what string) (time.Duration, bool) {
	v, ok := d.quantity(n, what, "a duration, as 90s (units ms, s, m, h, d)", durations())
	return time.Duration(v), ok
}

func (d *decoder) number(n *yaml.Node, what string, most int64) (int64, bool) {
	v, ok := d.quantity(n, what, "a whole number in plain digits", []unit{{"", 1}})
	if ok && v > most {
		d.fail(n, "%s must be %d at most", what, most)
		return 0, false
	}
	return v, ok
}

// quantity: zero would switch off what the setting bounds, so it is refused.
func (d *decoder) quantity(n *yaml.Node, what, form string, units []unit) (int64, bool) {
	if n.Kind == yaml.ScalarNode && n.Value != "" {
		if v, ok := quantity(n.Value, units); ok && v > 0 {
			return v, true
		}
	}
	d.fail(n, "%s must be %s, above zero", what, form)
	return 0, false
}

func (d *decoder) boolean(n *yaml.Node, what string) (bool, bool) {
	v, ok := d.oneOf(n, what, "true", "false")
	return v == "true", ok
}
