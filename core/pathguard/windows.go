// SPDX-License-Identifier: Apache-2.0

package pathguard

import (
	"net/url"
	"runtime"
	"slices"
	"strings"

	"github.com/postern-gate/postern/core/fault"
)

// The functions here know what a Windows path means without asking Windows, so
// that they are tested everywhere.

const onWindows = runtime.GOOS == "windows"

// native turns a spelling into slashes where Windows reads it; elsewhere every
// byte but the slash is an ordinary one.
func native(spelling string, windows bool) (path, why string) {
	if !windows {
		return spelling, ""
	}
	s := strings.ReplaceAll(spelling, `\`, "/")
	switch {
	case strings.HasPrefix(s, "//"):
		return "", "a network or device path is no name here"
	case strings.HasPrefix(s, "/"):
		return "", "a path without a drive depends on the current one"
	case len(s) >= 2 && s[1] == ':' && isLetter(s[0]):
		if len(s) > 2 && s[2] != '/' {
			return "", "a path relative to a drive depends on the current folder"
		}
		// Only the drive's letter folds. A bare drive is its root folder.
		rest := strings.TrimPrefix(s[2:], "/")
		return strings.ToUpper(s[:1]) + ":/" + rest, badWindows(rest)
	}
	return s, badWindows(s)
}

// isAbs reports whether a native path is absolute.
func isAbs(path string, windows bool) bool { return rootLen(path, windows) > 0 }

// rootLen is the length of "/" or "C:/" at the start, 0 for a relative path.
func rootLen(path string, windows bool) int {
	switch {
	case !windows && strings.HasPrefix(path, "/"):
		return len("/")
	case windows && len(path) >= 3 && path[1:3] == ":/" && isLetter(path[0]):
		return len("C:/")
	}
	return 0
}

// badWindows says which component Windows would read as something else than a
// plain name: see "Naming Files, Paths, and Namespaces" of the Win32 manual.
func badWindows(rel string) string {
	for part := range strings.SplitSeq(rel, "/") {
		switch {
		case part == "" || part == "." || part == "..":
		case strings.ContainsAny(part, `<>:"|?*`) || strings.IndexFunc(part, isControl) >= 0:
			return "Windows gives a character of the name another meaning"
		case strings.TrimRight(part, ". ") != part:
			return "Windows drops dots and blanks at the end of a name"
		case reserved(part):
			return "the name is a device on Windows"
		}
	}
	return ""
}

func isControl(r rune) bool { return r < ' ' }

// reserved knows the device names, which an extension does not change.
func reserved(part string) bool {
	base, _, _ := strings.Cut(part, ".")
	base = strings.ToUpper(strings.TrimRight(base, " "))
	for _, port := range [...]string{"COM", "LPT"} {
		if digit, ok := strings.CutPrefix(base, port); ok && isPort(digit) {
			return true
		}
	}
	return slices.Contains([]string{"CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$", "CLOCK$"}, base)
}

// isPort: a digit, or one of the three superscript digits of Latin-1, which
// Windows takes for one.
func isPort(s string) bool {
	return len(s) == 1 && s[0] >= '0' && s[0] <= '9' || s == "¹" || s == "²" || s == "³"
}

// FileURI returns the absolute path that a file: URI of a local file means
// (RFC 8089), percent-decoded exactly once. Another scheme, a foreign host, a
// query, a fragment, an escaped slash or NUL and bad escapes are path.denied.
func FileURI(uri string) (string, error) { return fileURI(uri, onWindows) }

func fileURI(uri string, windows bool) (string, error) {
	u, err := url.Parse(uri)
	if err != nil {
		return "", refuse(fault.PathDenied, uri, "the URI is malformed")
	}
	if why := badURI(u, uri, windows); why != "" {
		return "", refuse(fault.PathDenied, uri, why)
	}
	if !windows {
		return u.Path, nil
	}
	path := u.Path[1:]
	if slashed, why := native(path, true); why != "" || !isAbs(slashed, true) {
		return "", refuse(fault.PathDenied, uri, "the path has no drive")
	}
	return strings.ReplaceAll(path, "/", `\`), nil
}

func badURI(u *url.URL, uri string, windows bool) string {
	escaped := strings.ToLower(u.EscapedPath())
	switch {
	case u.Scheme != "file" || u.Opaque != "" || u.User != nil:
		return "only file: URIs name folders"
	case u.Host != "" && u.Host != "localhost":
		return "the URI names another host"
	case strings.ContainsAny(uri, "?#"):
		return "a query or fragment is no part of a path"
	case strings.Contains(escaped, "%2f"), windows && strings.Contains(escaped, "%5c"):
		return "an escaped slash is no part of a name"
	case !strings.HasPrefix(u.Path, "/"):
		return "the path is not absolute"
	}
	return badForm(u.Path)
}
