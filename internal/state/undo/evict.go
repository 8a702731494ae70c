// SPDX-License-Identifier: Apache-2.0

package undo

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"slices"
	"time"
)

// young is the age below which no image gives way to another agent.
const young = 24 * time.Hour

// owner is who an image counts for: the agent, or the person who undoes.
func (c *Change) owner() string {
	if c.Undoes {
		return digest("undo")
	}
	return digest("agent " + c.Agent)
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:4])
}

// eviction is one search for room.
type eviction struct {
	claim

	l      *Log
	part   int64 // how many parts of the bound more than is needed
	have   counters
	held   map[string]counters // by owners
	pinned map[string]bool
	newest map[string]string // the newest change of each owner
	gone   map[string]bool
}

// evict makes room. First an owner that has more than its half while others have
// something gives way, then what the owner who needs it has, the middle of a
// run on one name before its ends, then what is old. What is young gives way to
// nobody else, so that no agent can do away with what another one did. What an undo
// still needs itself gives way to none of its own steps.
func (l *Log) evict(c claim) (have counters, fits bool, err error) {
	all, err := l.list()
	if err != nil {
		return have, false, err
	}
	all = slices.DeleteFunc(all, func(k kept) bool { return c.away[filepath.Base(k.path)] })
	v := eviction{
		l: l, claim: c,
		held: map[string]counters{}, newest: map[string]string{}, gone: map[string]bool{},
	}
	if v.pinned, err = l.pinned(all); err != nil {
		return have, false, err
	}
	for _, k := range all {
		v.count(k, 1)
		v.newest[k.owner] = k.id
	}
	if v.have.entries+c.need.entries > int64(l.o.MaxImages) || len(all) > 256 {
		v.part = 1
	}
	v.run(all)
	return v.have, v.room(0), nil
}

func (v *eviction) run(all []kept) {
	old := v.l.now().Add(-young)
	v.pass(all, func(k kept) bool { return k.owner != v.owner && v.over(k.owner, 0) && v.newest[k.owner] != k.id })
	mine := func(k kept) bool { return k.owner == v.owner && !v.pinned[k.id] }
	middle := middles(all)
	v.pass(all, func(k kept) bool { return mine(k) && middle[k.path] })
	v.pass(all, mine)
	v.pass(all, func(k kept) bool { return k.owner != v.owner && k.at.Before(old) && !v.pinned[k.id] })
}

// pass removes, the oldest first, what it may, until there is room.
func (v *eviction) pass(all []kept, may func(kept) bool) {
	for _, k := range all {
		if v.room(v.part) {
			return
		}
		if v.gone[k.path] || v.needs[filepath.Base(k.path)] || !may(k) || !v.dry && remove(k.path) != nil {
			continue
		}
		v.gone[k.path] = true
		v.count(k, -1)
	}
}

func (v *eviction) count(k kept, sign int64) {
	h := v.held[k.owner]
	v.held[k.owner] = counters{h.bytes + sign*k.bytes, h.entries + sign*k.entries}
	v.have.bytes, v.have.entries = v.have.bytes+sign*k.bytes, v.have.entries+sign*k.entries
}

// over reports an owner that has more than half, with need more.
func (v *eviction) over(owner string, need int64) bool {
	h := v.held[owner]
	return h.bytes+need*v.need.bytes > v.l.o.Total/2 || h.entries+need*v.need.entries > int64(v.l.o.MaxImages)/2
}

// room is whether it fits, in all and, where others have something, in the half
// of the owner.
func (v *eviction) room(part int64) bool {
	o := v.l.o
	fits := v.have.bytes+v.need.bytes+part*(o.Total/slack) <= o.Total &&
		v.have.entries+v.need.entries+part*int64(o.MaxImages/slack) <= int64(o.MaxImages)
	others := v.have.entries > v.held[v.owner].entries
	return fits && (!others || !v.over(v.owner, 1))
}

// middles are the images of a process's run on one name but for its first and
// its newest.
func middles(all []kept) map[string]bool {
	runs := map[[2]string][]kept{}
	for _, k := range all {
		if k.name != "" {
			key := [2]string{k.prefix, k.name}
			runs[key] = append(runs[key], k)
		}
	}
	middle := map[string]bool{}
	for _, run := range runs {
		for i := 1; i < len(run)-1; i++ {
			middle[run[i].path] = true
		}
	}
	return middle
}
