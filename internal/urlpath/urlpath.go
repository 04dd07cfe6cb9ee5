// Package urlpath carries ids in the paths of URLs.
//
// It promises that any id arrives as it was sent, through the Functions host and without it. The host's proxy is what stands
// in the way: it hands %2F on as %252F, so a server cannot tell an id with a slash from one with the letters %2F; and it
// resolves the segments "." and "..", however they are encoded.
//
// So there are two encodings on top of each other. The inner one is for what the proxy does not carry: a slash is %2F or stays
// as it is, the ids "." and ".." are written with %2E, and an id's own %2F and %2E get a 25 behind their percent sign. The
// outer one is that of every URL. A client that encodes ids in the usual way, once, reaches all but those whose letters are
// %2F or %2E themselves.
package urlpath

import (
	"net/url"
	"regexp"
	"strings"
)

// A percent sign of the inner encoding, as it is in an id and as it is in a path, where the outer encoding is around it.
var (
	inID   = regexp.MustCompile(`%((?:25)*2[EFef])`)
	inPath = regexp.MustCompile(`%25((?:25)*2[EFef])`)
)

// Escape is an id as a segment of a path.
func Escape(id string) string {
	inner := inID.ReplaceAllString(id, "%25$1")
	if id == "." || id == ".." {
		inner = strings.ReplaceAll(id, ".", "%2E")
	}
	return strings.ReplaceAll(url.PathEscape(inner), "+", "%2B") // which many read as a blank
}

// Restore takes the inner encoding out of a path, in place: its segments are encoded once from then on. It leaves alone what
// is not encoded as a URL has it.
func Restore(u *url.URL) {
	escaped := inPath.ReplaceAllString(u.EscapedPath(), "%$1")
	if path, err := url.PathUnescape(escaped); err == nil {
		u.Path, u.RawPath = path, escaped
	}
}
