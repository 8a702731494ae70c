// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"encoding/base64"
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// mediaTypes returns the status and the rule of a POST whose headers don't say
// that it sends and takes what this transport speaks, or 0.
func mediaTypes(h http.Header) (status int, rule string) {
	kind, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	charset := params["charset"]
	switch {
	case err != nil || kind != "application/json" || len(h.Values("Content-Type")) != 1,
		charset != "" && !strings.EqualFold(charset, "utf-8"):
		return http.StatusUnsupportedMediaType, "Content-Type is not application/json"
	case h.Get("Content-Encoding") != "":
		return http.StatusUnsupportedMediaType, "a Content-Encoding is not accepted"
	}
	if whole, events := accepts(h); !whole || !events {
		return http.StatusNotAcceptable, "Accept does not hold both application/json and text/event-stream"
	}
	return 0, ""
}

// accepts reports which of the two forms of an answer the client takes.
func accepts(h http.Header) (whole, events bool) {
	for _, line := range h.Values("Accept") {
		for part := range strings.SplitSeq(line, ",") {
			kind, params, err := mime.ParseMediaType(part)
			if err != nil {
				continue
			}
			if q, err := strconv.ParseFloat(params["q"], 64); err == nil && q == 0 {
				continue
			}
			switch kind {
			case "*/*":
				whole, events = true, true
			case "application/json", "application/*":
				whole = true
			case "text/event-stream", "text/*":
				events = true
			}
		}
	}
	return whole, events
}

// mirrored returns what is wrong with the headers that must say what the body
// of a request of the stateless era says, or "".
func mirrored(h http.Header, q *request) (rule string) {
	version, _ := q.meta.Get(metaVersion)
	if asked, err := version.String(); err == nil {
		if rule := says(h, headerVersion, asked, plain); rule != "" {
			return rule
		}
	}
	if rule := says(h, headerMethod, q.method, plain); rule != "" {
		return rule
	}
	member := "name"
	switch q.method {
	case "tools/call", "prompts/get":
	case "resources/read":
		member = "uri"
	default:
		return ""
	}
	value, _ := q.params.Get(member)
	name, err := value.String()
	if err != nil && len(h.Values(headerName)) > 0 {
		return headerName + " names something, and the body does not"
	}
	return says(h, headerName, name, encoded)
}

// says returns what is wrong with a header that must be there once and hold
// want, or "".
func says(h http.Header, key, want string, decode func(string) (string, bool)) (rule string) {
	values := h.Values(key)
	if len(values) != 1 {
		return "the request has not exactly one " + key
	}
	got, ok := decode(values[0])
	if !ok {
		return key + " is not a well-formed value"
	}
	if got != want {
		return key + " is not what the body says"
	}
	return ""
}

func plain(value string) (string, bool) {
	for i := range len(value) {
		if c := value[i]; c != '\t' && (c < ' ' || c > '~') {
			return "", false
		}
	}
	return value, true
}

// encoded is plain, or base64 between the two marks.
func encoded(value string) (string, bool) {
	rest, marked := strings.CutPrefix(value, "=?base64?")
	if middle, ok := strings.CutSuffix(rest, "?="); marked && ok {
		text, err := base64.StdEncoding.Strict().DecodeString(middle)
		return string(text), err == nil
	}
	return plain(value)
}
