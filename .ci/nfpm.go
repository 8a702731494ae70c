// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// Command nfpm prints the nfpms part of .goreleaser.yaml as a configuration of
// nfpm, with the binary beside it, so that packages can be checked without
// building goreleaser, which takes minutes:
//
//	go run .ci/nfpm.go VERSION ARCH COMMIT-DATE BINARY <.goreleaser.yaml
package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"strings"

	"go.yaml.in/yaml/v4"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "nfpm.go:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 4 {
		return fmt.Errorf("%d arguments, not VERSION ARCH COMMIT-DATE BINARY", len(args))
	}
	version, arch, date, binary := args[0], args[1], args[2], args[3]
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	var release struct {
		NFPMs []map[string]any `yaml:"nfpms"`
	}
	filled := strings.NewReplacer("{{ .CommitDate }}", date, "{{ .ConventionalFileName }}", "").Replace(string(text))
	if err := yaml.Unmarshal([]byte(filled), &release); err != nil {
		return err
	}
	if len(release.NFPMs) != 1 {
		return fmt.Errorf("%d nfpms, not one", len(release.NFPMs))
	}
	return print(release.NFPMs[0], version, arch, date, binary)
}

// print writes what goreleaser would hand to nfpm. A key or a template that is
// new in .goreleaser.yaml must be thought of here.
func print(p map[string]any, version, arch, date, binary string) error {
	known := map[string]string{
		"package_name": "name", "bindir": "", "formats": "", "file_name_template": "", "vendor": "vendor", "homepage": "homepage", "maintainer": "maintainer",
		"description": "description", "license": "license", "section": "section", "mtime": "mtime", "rpm": "rpm", "contents": "contents",
	}
	out := map[string]any{"version": version, "version_schema": "semver", "arch": arch, "platform": "linux"}
	for key, value := range p {
		to, ok := known[key]
		if !ok {
			return fmt.Errorf("the key %s of nfpms is not known here", key)
		}
		if to != "" {
			out[to] = value
		}
	}
	contents, ok := p["contents"].([]any)
	if !ok {
		return fmt.Errorf("contents is a %T", p["contents"])
	}
	info := map[string]any{"mode": 0o755, "mtime": date}
	out["contents"] = append(contents, map[string]any{"src": binary, "dst": fmt.Sprint(p["bindir"], "/postern"), "file_info": maps.Clone(info)})
	text, err := yaml.Marshal(out)
	if err != nil {
		return err
	}
	if strings.Contains(string(text), "{{") {
		return fmt.Errorf("a template that is not known here:\n%s", text)
	}
	_, err = os.Stdout.Write(text)
	return err
}
