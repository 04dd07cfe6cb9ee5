package localhost

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// decodePath decodes the path of a request like the real host's server: it decodes escapes except those of a slash and
// those that are no character, and resolves dot segments. The real host refuses a path with an escaped null.
func decodePath(raw string) (path string, ok bool) {
	var b strings.Builder
	for len(raw) > 0 {
		if raw[0] != '%' {
			b.WriteByte(raw[0])
			raw = raw[1:]
			continue
		}
		char, size := escapedRune(raw)
		switch {
		case char == 0 && size > 0:
			return "", false
		case size == 0:
			b.WriteByte('%')
			raw = raw[1:]
			continue
		case char == '/':
			b.WriteString(raw[:size])
		default:
			b.WriteRune(char)
		}
		raw = raw[size:]
	}
	return resolveDots(b.String()), true
}

// escapedRune reads the escapes of one character at the beginning of s; size is 0 without any.
func escapedRune(s string) (char rune, size int) {
	var encoded []byte
	for n := 0; n+3 <= len(s) && s[n] == '%' && len(encoded) < utf8.UTFMax; n += 3 {
		value, err := strconv.ParseUint(s[n+1:n+3], 16, 8)
		if err != nil {
			break
		}
		encoded = append(encoded, byte(value))
		if utf8.FullRune(encoded) {
			break
		}
	}
	if !utf8.FullRune(encoded) {
		return 0, 0
	}
	char, length := utf8.DecodeRune(encoded)
	if char == utf8.RuneError && length == 1 {
		return 0, 0
	}
	return char, 3 * length
}

// resolveDots removes the segments "." and ".." from a path.
func resolveDots(path string) string {
	parts := strings.Split(path, "/")
	if !slices.Contains(parts, ".") && !slices.Contains(parts, "..") {
		return path
	}
	kept := parts[:1:1] // the text before the first slash
	for i, part := range parts[1:] {
		switch part {
		case ".", "..":
			if part == ".." && len(kept) > 1 {
				kept = kept[:len(kept)-1]
			}
			if i == len(parts)-2 {
				kept = append(kept, "")
			}
		default:
			kept = append(kept, part)
		}
	}
	return strings.Join(kept, "/")
}

const (
	letters   = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~"
	pathChars = letters + "!$&'()*+,;=:@/"
	// queryChars are the characters that stay unescaped in a query, with the percent signs of escapes.
	queryChars = letters + "!$&'()*+,;=:@/?#[]"
)

// encodePath encodes a decoded path like the real host's proxy. A slash that was escaped comes out escaped twice.
func encodePath(path string) string { return escape(path, pathChars) }

// encodeQuery encodes a query like the real host's proxy: escapes stay, and invalid characters are escaped.
func encodeQuery(query string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(query, "%")
		b.WriteString(escape(before, queryChars))
		if !found {
			return b.String()
		}
		if len(after) >= 2 && isHex(after[0]) && isHex(after[1]) {
			b.WriteByte('%')
		} else {
			b.WriteString("%25")
		}
		query = after
	}
}

func isHex(c byte) bool { return strings.IndexByte("0123456789abcdefABCDEF", c) >= 0 }

// escape escapes every byte except the allowed ones.
func escape(s, allowed string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for _, c := range []byte(s) {
		if strings.IndexByte(allowed, c) >= 0 {
			b.WriteByte(c)
			continue
		}
		b.Write([]byte{'%', digits[c>>4], digits[c&15]})
	}
	return b.String()
}

// requestPath returns the path of a request as sent.
func requestPath(r *http.Request) string {
	path, _, _ := strings.Cut(r.RequestURI, "?")
	if _, rest, absolute := strings.Cut(path, "://"); absolute && !strings.HasPrefix(path, "/") {
		_, path, _ = strings.Cut(rest, "/")
		path = "/" + path
	}
	return path
}

// Limits of the head of a request, as those of the real host's server.
const (
	maxRequestLine = 8 << 10
	maxHeaders     = 100
	maxHeaderBytes = 32 << 10
)

// headStatus returns the status with which the real host refuses the head of a request; 0 if it does not.
func headStatus(r *http.Request) int {
	if len(r.Method)+len(r.RequestURI)+len(r.Proto)+len("  \r\n") > maxRequestLine {
		return http.StatusRequestURITooLong
	}
	if strings.ContainsFunc(r.RequestURI, func(c rune) bool { return c >= utf8.RuneSelf }) {
		return http.StatusBadRequest
	}
	count, size := 1, len("Host: \r\n")+len(r.Host)
	for name, values := range r.Header {
		for _, value := range values {
			count++
			size += len(name) + len(value) + len(": \r\n")
		}
	}
	switch {
	case count > maxHeaders || size > maxHeaderBytes:
		return http.StatusRequestHeaderFieldsTooLarge
	case r.Host == "":
		return http.StatusInternalServerError
	default:
		return 0
	}
}

// method returns the method of a request: the standard ones are recognized in any letter case.
func method(r *http.Request) string {
	upper := strings.ToUpper(r.Method)
	switch upper {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, http.MethodTrace:
		return upper
	default:
		return r.Method
	}
}
