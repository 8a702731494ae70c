// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"errors"
	"io/fs"
	"slices"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
)

// use says what an operand's name is opened for.
type use uint8

const (
	useFile    use = iota // the bytes of a regular file
	useDir                // the entries of a directory
	useFacts              // facts about what the name leads to
	useTarget             // what a mutation changes, links followed beneath the roots
	useEntry              // what a mutation changes, the entry itself
	useNewDirs            // a directory to be made, with those missing above it
)

// maxHops bounds how many links one spelling may lead over.
// It is Linux's own limit for links in a path (path_resolution(7)).
const maxHops = 40

// operand is one path of a crossing: what the caller wrote, and the handle that
// its judged canonical name led to.
type operand struct {
	spelling string
	root     string // the one root that it must lie beneath, "" for any
	part     string // what it is to a call that has two: from or to
	use      use
	actions  []core.Action // judged on every name that the spelling leads over
	onNew    []core.Action // instead, where the target does not exist yet

	name   pathguard.Name
	links  []pathguard.Name // the names before, each of which led on
	file   *pathguard.File
	dir    *pathguard.Dir
	info   pathguard.Info
	target *pathguard.Target
	below  []pathguard.Name // of useNewDirs: what is missing beneath the target
}

// resolve finds the one name that the spelling means, then judges and opens
// it. A link proposes another name, which is judged and opened like the first.
func (o *operand) resolve(c *crossing) error {
	names, err := c.gate.o.Workspace.Parse(o.spelling)
	if err != nil {
		return err
	}
	if o.name, err = o.choose(c, names); err != nil {
		return err
	}
	return o.follow(c)
}

func (o *operand) follow(c *crossing) error {
	for range maxHops + 1 {
		if err := o.judgeBefore(c); err != nil {
			return err
		}
		err := o.open()
		var link *pathguard.LinkError
		if !errors.As(err, &link) {
			if err == nil && o.file != nil {
				err = c.checkContent(o.name, o.file)
			}
			if err != nil {
				return o.withoutFolder(err)
			}
			return o.judgeAfter(c)
		}
		o.links, o.name = append(o.links, o.name), link.To
	}
	o.name = pathguard.Name{} // the last one was not judged
	return &fault.Error{Code: fault.PathSymlink, Resource: o.spelling, Rule: "too many links"}
}

// withoutFolder tells somebody who makes a new name what is missing: not the
// file, the folder for it.
func (o *operand) withoutFolder(err error) error {
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != fault.PathMissing || o.onNew == nil && !slices.Contains(o.actions, core.FSCreate) {
		return err
	}
	hinted := *f
	hinted.Hint = "make the folder first"
	return &hinted
}

// choose picks the root of a relative name: the one that has it. Candidates
// are judged before they are looked up, so that a denied one tells nothing.
func (o *operand) choose(c *crossing, names []pathguard.Name) (pathguard.Name, error) {
	if len(names) == 1 {
		return names[0], nil
	}
	var hits []pathguard.Name
	verdict, decided := c.verdict, c.decided
	c.trial = true
	defer func() { c.trial = false }()
	for _, n := range names {
		o.name = n
		if err := o.judgeBefore(c); err != nil {
			return n, err
		}
		if _, err := n.Lstat(); !errors.Is(err, fs.ErrNotExist) {
			hits = append(hits, n)
		}
	}
	if len(hits) == 1 {
		c.verdict, c.decided = verdict, decided // the others are not asked about; this one is judged again
		return hits[0], nil
	}
	rule := "no root has such a name, and several could"
	if len(hits) > 1 {
		rule = "several roots have such a name"
	}
	return pathguard.Name{}, &fault.Error{
		Code: fault.PathDenied, Resource: o.spelling, Rule: rule,
		Hint: "write it as ROOT://name or as an absolute name",
	}
}

// judgeBefore runs before the name is touched. Whether a target exists is not
// known yet; it is denied here when neither way would be allowed.
func (o *operand) judgeBefore(c *crossing) error {
	if o.root != "" && o.name.Root().Name() != o.root {
		o.name = pathguard.Name{} // it is not judged, so no record spells it out
		return &fault.Error{
			Code: fault.PathEscape, Resource: o.spelling, Rule: "the name is not beneath the root " + o.root,
			Hint: "use a name beneath " + o.root + "://",
		}
	}
	if o.onNew == nil {
		return judgeAll(c, o.actions, o.name.Resource())
	}
	saved, about, trial := c.verdict, c.decided, c.trial
	c.trial = true
	defer func() { c.trial = trial }()
	err := judgeAll(c, o.actions, o.name.Resource())
	denied, by := c.verdict, c.decided
	if err != nil {
		c.verdict, c.decided = saved, about
		if judgeAll(c, o.onNew, o.name.Resource()) != nil {
			c.verdict, c.decided = denied, by // which the record gives as the reason
			return err
		}
	}
	c.verdict, c.decided = saved, about
	return nil
}

// judgeAfter judges the way that it turned out to be.
func (o *operand) judgeAfter(c *crossing) error {
	if o.use == useNewDirs {
		return o.judgeDirs(c)
	}
	if o.onNew == nil {
		return nil
	}
	actions := o.onNew
	if o.exists() {
		actions = o.actions
	}
	if o.use == useTarget && c.tool == nil {
		c.action = actions[len(actions)-1] // a write that makes the file is a create
	}
	for _, n := range append(slices.Clone(o.links), o.name) { // a rule about a link's name holds through it
		if err := judgeAll(c, actions, n.Resource()); err != nil {
			o.name = n
			return err
		}
	}
	return nil
}

// judgeDirs judges every directory that would be made.
func (o *operand) judgeDirs(c *crossing) error {
	if o.target.Exists() {
		return nil
	}
	if err := judgeAll(c, o.actions, o.target.Name().Resource()); err != nil {
		return err
	}
	for _, n := range o.below {
		if err := judgeAll(c, o.actions, n.Resource()); err != nil {
			return err
		}
	}
	return nil
}

func judgeAll(c *crossing, actions []core.Action, r core.Resource) error {
	for _, a := range actions {
		if err := c.judge(a, r); err != nil {
			return err
		}
	}
	return nil
}

func (o *operand) open() (err error) {
	switch o.use {
	case useFile:
		o.file, err = o.name.Open()
	case useDir:
		o.dir, err = o.name.OpenDir()
	case useFacts:
		o.info, err = o.name.Stat()
	case useTarget:
		o.target, err = o.name.Pin()
	case useEntry:
		o.target, err = o.name.PinEntry()
	case useNewDirs:
		err = o.openNewDirs()
	}
	return err
}

// openNewDirs pins the outermost directory that is missing. A link on the way
// proposes the same names beneath where it leads.
func (o *operand) openNewDirs() error {
	o.below = nil
	for n := o.name; ; {
		t, err := n.Pin()
		if err == nil {
			o.target = t
			return nil
		}
		var link *pathguard.LinkError
		if errors.As(err, &link) {
			return o.relink(link)
		}
		up, inside := n.Parent()
		if !errors.Is(err, fs.ErrNotExist) || !inside {
			return err
		}
		o.below = append([]pathguard.Name{n}, o.below...)
		n = up
	}
}

func (o *operand) relink(link *pathguard.LinkError) error {
	to := link.To
	for _, n := range o.below {
		var err error
		if to, err = to.Join(n.Base()); err != nil {
			return err
		}
	}
	return &pathguard.LinkError{Name: o.name, To: to}
}

// again opens and judges the canonical name once more, under the locks. A name
// that became a link in the meantime is refused, not followed.
func (o *operand) again(c *crossing) error {
	before := o.name
	o.close()
	if err := o.follow(c); err != nil {
		return err
	}
	if o.name != before {
		return &fault.Error{
			Code: fault.PreconditionFailed, Resource: before.Resource().String(), Retry: true,
			Rule: "it became a link while the call waited",
		}
	}
	return nil
}

func (o *operand) exists() bool { return o.target == nil || o.target.Exists() }

// etag identifies what the operand holds now; "" where nothing is there.
func (o *operand) etag() string {
	switch {
	case o.target != nil && o.target.Exists():
		return o.target.Fingerprint().String()
	case o.file != nil:
		return o.file.Fingerprint().String()
	case o.use == useFacts && o.info.Kind != pathguard.KindUnknown:
		return o.info.Fingerprint.String()
	default:
		return ""
	}
}

func (o *operand) close() {
	if o.file != nil {
		_ = o.file.Close()
	}
	if o.dir != nil {
		_ = o.dir.Close()
	}
	if o.target != nil {
		_ = o.target.Close()
	}
	o.file, o.dir, o.target = nil, nil, nil
}
