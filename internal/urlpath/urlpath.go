// Package urlpath carries ids in the paths of URLs.
//
// Any id arrives as it was sent, through the Functions host and without it. The obstacle is the host's proxy. It
// changes %2F to %252F, so a server cannot distinguish an id with a slash from an id with the letters %2F. It also
// resolves the segments "." and "..", in any encoding.
//
// So two encodings are nested. The inner one is for the characters that the proxy does not preserve. A slash is %2F or
// stays as it is, the ids "." and ".." are written with %2E, and an id's own %2F and %2E get a 25 after their percent
// sign. The outer one is that of every URL. A client that encodes ids in the usual way, once, reaches all ids except
// those with the letters %2F or %2E.
package urlpath

import (
	"net/url"
	"regexp"
	"strings"
)

// A percent sign of the inner encoding, in an id, and in a path with the outer encoding around it.
var (
	inID   = regexp.MustCompile(`%((?:25)*2[EFef])`)
	inPath = regexp.MustCompile(`%25((?:25)*2[EFef])`)
)

// Escape returns an id as a segment of a path.
func Escape(id string) string {
	inner := inID.ReplaceAllString(id, "%25$1")
	if id == "." || id == ".." {
		inner = strings.ReplaceAll(id, ".", "%2E")
	}
	return strings.ReplaceAll(url.PathEscape(inner), "+", "%2B") // many decoders read a plus sign as a blank
}

// Restore removes the inner encoding from a path, in place: its segments are then encoded once. It ignores segments
// that are not URL-encoded.
func Restore(u *url.URL) {
	escaped := inPath.ReplaceAllString(u.EscapedPath(), "%$1")
	if path, err := url.PathUnescape(escaped); err == nil {
		u.Path, u.RawPath = path, escaped
	}
}
