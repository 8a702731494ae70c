// SPDX-License-Identifier: Apache-2.0

//go:build unix

package doctor

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
)

const goodTalk = `{"jsonrpc":"2.0","id":1,"result":{"serverInfo":{"name":"postern"}}}
{"jsonrpc":"2.0","method":"notifications/message"}
{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"read_text_file"}]}}
{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"Allowed:\n/work"}]}}
{"jsonrpc":"2.0","id":4,"result":{"isError":true,"content":[],"_meta":{"dev.postern/error":{"code":"policy.denied"}}}}
`

// FuzzTalk: whatever a program answers, only one that refuses, with a code, is
// taken for a guard.
func FuzzTalk(f *testing.F) {
	f.Add([]byte(goodTalk))
	f.Add([]byte(`{"id":1,"error":{"code":1}}`))
	f.Add([]byte("{\n[]\nnull\n"))
	f.Add(bytes.Replace([]byte(goodTalk), []byte(`"isError":true`), []byte(`"isError":false`), 1))
	f.Fuzz(func(t *testing.T, said []byte) {
		err := talk(io.Discard, bytes.NewReader(said))
		if bytes.ContainsRune(said, '\\') {
			return // keys may be spelled in many ways
		}
		low := bytes.ToLower(said)
		refuses := bytes.Contains(low, []byte("iserror")) && bytes.Contains(low, []byte("code"))
		if err == nil && !refuses {
			t.Errorf("taken for a guard: %q", said)
		}
	})
}

func TestTalk(t *testing.T) {
	if err := talk(io.Discard, bytes.NewReader([]byte(goodTalk))); err != nil {
		t.Error(err)
	}
	for what, change := range map[string][2]string{
		"read":     {`"isError":true`, `"isError":false`},
		"no code":  {`"code":"policy.denied"`, `"code":""`},
		"no tools": {`{"name":"read_text_file"}`, ``},
		"cut":      {`"id":4`, `"id":5`},
		"error":    {`"id":1,"result"`, `"id":1,"error"`},
	} {
		said := bytes.Replace([]byte(goodTalk), []byte(change[0]), []byte(change[1]), 1)
		if talk(io.Discard, bytes.NewReader(said)) == nil {
			t.Errorf("%s: taken for a guard", what)
		}
	}
}

// FuzzLastTime: any bytes in the place of a log give a time or none.
func FuzzLastTime(f *testing.F) {
	f.Add([]byte(`{"t":"2026-01-02T03:04:05Z"}` + "\n" + `{"t":"2026-`))
	f.Add([]byte("\n\n{}\nnull\n"))
	f.Fuzz(func(t *testing.T, log []byte) {
		path := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(path, log, 0o600); err != nil {
			t.Fatal(err)
		}
		if at, ok := lastTime(path, int64(len(log))); ok == at.IsZero() {
			t.Errorf("%v %v", at, ok)
		}
	})
}
