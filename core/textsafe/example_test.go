// SPDX-License-Identifier: Apache-2.0

package textsafe_test

import (
	"fmt"
	"os"

	"github.com/postern-gate/postern/core/textsafe"
)

func ExampleClean() {
	fmt.Println(textsafe.Clean("done\x1b[1A\x1b[2K\rallow? \u202eyes"))
	// Output: done [1A [2K allow? yes
}

func ExampleBlock() {
	fmt.Println(textsafe.Block("a\n\tb\u200b\x07"))
	// Output:
	// a
	// 	b
}

func ExampleLine_HTML() {
	fmt.Println(textsafe.Clean(`"><b onclick='x'>`).HTML())
	// Output: &#34;&gt;&lt;b onclick=&#39;x&#39;&gt;
}

func ExampleName() {
	fmt.Println(textsafe.Name("notes.txt"))
	fmt.Println(textsafe.Name("invoice\u202efdp.exe"))
	// Output:
	// notes.txt
	// "invoice\u202efdp.exe"
}

func ExampleHidden() {
	fmt.Println(textsafe.Hidden("pay\u200bpal\x1b[8m"))
	// Output: 2
}

func ExampleWriter() {
	w := textsafe.NewLineWriter(os.Stdout)
	for _, part := range []string{"a\xc2", "\x9b31m"} { // together a control
		if _, err := w.Write([]byte(part)); err != nil {
			panic(err)
		}
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	// Output: a 31m
}

func ExampleWord() {
	fmt.Println(textsafe.Word("notes.txt"))
	fmt.Println(textsafe.Word("n id=6f72022a0be3-1"))
	// Output:
	// notes.txt
	// "n id=6f72022a0be3-1"
}
