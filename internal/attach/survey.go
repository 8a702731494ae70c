// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// survey reads the files that may override entries, each once.
type survey struct {
	world World
	disk  *disk
	files map[string]content
}

func newSurvey(w World, d *disk) *survey { return &survey{w, d, map[string]content{}} }

// content is what a file says: a tree of maps, lists, texts and words, nil for a
// file that is absent or says nothing.
type content struct {
	root  any
	order map[string][]string // of the objects that are members of a root of JSON
	err   error
}

// inOrder is an object with its names in the order in which they stand.
type inOrder struct {
	names   []string
	members map[string]any
}

// ordered gives an object that look found by one key the order of its names.
func (s *survey) ordered(path, key string, v any) any {
	if o, ok := v.(map[string]any); ok {
		return inOrder{s.files[path].order[key], o}
	}
	return v
}

// word is a value of TOML that is neither a text, a list nor a table; which one
// isn't known.
type word struct{}

// maxLayer bounds a project's file of TOML: its parts take more room than its bytes.
const maxLayer = 256 << 10

// paths are the files of a place.
func (s *survey) paths(place string) []string {
	if beneath, ok := strings.CutPrefix(place, "./"); ok {
		if s.world.Project == "" {
			return nil
		}
		return []string{filepath.Join(s.world.Project, filepath.FromSlash(beneath))}
	}
	path := s.world.path(place)
	if path == "" {
		return nil
	}
	dir, end, several := strings.Cut(path, "*")
	if !several {
		return []string{path}
	}
	var all []string
	names, _ := os.ReadDir(dir) // what isn't there holds none
	for _, f := range names {
		if strings.HasSuffix(f.Name(), end) {
			all = append(all, filepath.Join(dir, f.Name()))
		}
	}
	return all
}

// keys fills in what they stand for.
func (s *survey) keys(keys []string, server string) []string {
	all := slices.Clone(keys)
	for i, k := range all {
		switch k {
		case "{folder}":
			all[i] = s.world.Project
		case "{name}":
			all[i] = strings.ToLower(server)
		}
	}
	return all
}

// look finds the value of the keys in a file. Strict finds also what stands in
// the way and holds no keys. For a file that can't be read it finds "".
func (s *survey) look(path string, isTOML bool, keys []string, strict bool, found func(key string, v any)) {
	c, seen := s.files[path]
	if !seen {
		if there(path) {
			c, c.err = s.read(path, isTOML)
		}
		s.files[path] = c
	}
	if c.err != nil {
		found("", nil)
		return
	}
	if o, ok := c.root.(map[string]any); ok {
		walk(o, keys, "", strict, found)
	}
}

func walk(o map[string]any, keys []string, front string, strict bool, found func(key string, v any)) {
	names := keys[:1]
	if names[0] == "*" {
		names = slices.Sorted(maps.Keys(o))
	}
	for _, name := range names {
		v, ok := o[name]
		if !ok {
			continue
		}
		inner, more := v.(map[string]any)
		switch at := front + name; {
		case len(keys) == 1 || !more && strict:
			found(at, v)
		case more:
			walk(inner, keys[1:], at+".", strict, found)
		}
	}
}

func (s *survey) read(path string, isTOML bool) (c content, err error) {
	at, err := s.disk.read(file{path: path})
	if err != nil {
		return c, err
	}
	if prob := checkText(at.text); prob != nil {
		return c, unfit(at, prob)
	}
	text := bytes.TrimPrefix(at.text, bom)
	if !isTOML {
		c, prob := treeJSON(text)
		if prob != nil {
			return c, unfit(at, prob)
		}
		return c, nil
	}
	if s.disk.holds(path) && len(text) > maxLayer {
		return c, unfit(at, wrong(-1, "it is larger than 256 KiB"))
	}
	items, prob := scanTOML(string(text))
	if prob != nil {
		return c, unfit(at, prob)
	}
	return content{root: treeTOML(items)}, nil
}

func treeJSON(text []byte) (c content, prob *problem) {
	if blank(string(text)) {
		return c, nil
	}
	if at := tooDeep(text); at >= 0 {
		return c, wrong(at, "it is nested more than %d levels deep", maxDepth)
	}
	tree, err := hujson.Parse(append(bytes.Clone(text), '\n'))
	if err == nil {
		tree.Standardize()
		err = json.Unmarshal(tree.Pack(), &c.root)
	}
	if err != nil {
		return c, wrong(-1, "it can't be parsed")
	}
	c.order = map[string][]string{}
	if root, ok := tree.Value.(*hujson.Object); ok {
		for _, m := range root.Members {
			c.order[nameOf(m)] = namesOf(m.Value)
		}
	}
	return c, nil
}

// namesOf are the names in an object, each where it stands first, as readers of
// JavaScript order them; none of anything else.
func namesOf(v hujson.Value) (names []string) {
	o, ok := v.Value.(*hujson.Object)
	if !ok {
		return nil
	}
	seen := map[string]bool{}
	for _, m := range o.Members {
		if name := nameOf(m); !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names
}

func nameOf(m hujson.ObjectMember) string {
	name, _ := m.Name.Value.(hujson.Literal) // nothing else is a name
	return name.String()
}

func treeTOML(items []tomlItem) map[string]any {
	root := map[string]any{}
	for _, it := range items {
		switch it.kind {
		case '=':
			put(root, it.path, it.value)
		case '[', 'a':
			put(root, it.path, map[string]any{})
		}
	}
	return root
}

// put makes a value of a tree. What is there already stays, but for what takes the
// place of a table: the file isn't valid then.
func put(o map[string]any, path []string, v any) {
	if v == nil {
		v = word{}
	}
	for _, name := range path[:len(path)-1] {
		inner, ok := o[name].(map[string]any)
		if !ok {
			inner = map[string]any{}
			o[name] = inner
		}
		o = inner
	}
	last := path[len(path)-1]
	if _, ok := o[last].(map[string]any); !ok {
		o[last] = v
	}
}

// agrees reports whether another entry of the name changes nothing about this
// one: it runs the same, or where both are mixed says nothing of it.
func (f form) agrees(own entry, other any, mixed bool) bool {
	o, ok := other.(map[string]any)
	if !ok {
		return false
	}
	line := own.args
	if f.array {
		line = append([]string{own.command}, own.args...)
	}
	missing := 2
	for name, v := range o {
		switch {
		case f.array && name == "command":
			missing = 0
			ok = words(v, line)
		case name == "command":
			missing--
			ok = v == own.command
		case !f.array && name == "args":
			missing--
			ok = words(v, line)
		default:
			ok = f.idle(name, spelled(v))
		}
		if !ok {
			return false
		}
	}
	return mixed || missing == 0
}

// words reports whether a value is the list.
func words(v any, list []string) bool {
	all, ok := v.([]any)
	return ok && slices.EqualFunc(all, list, func(a any, b string) bool { return a == b })
}

// spelled is a value as JSON, "" for one that isn't known.
func spelled(v any) string {
	text, err := json.Marshal(v)
	if _, unknown := v.(word); unknown || err != nil {
		return ""
	}
	return string(text)
}
