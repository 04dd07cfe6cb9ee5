package redact

import "strings"

// findCredentials finds the passwords of URLs and of data source names.
func findCredentials(text string, spans []span) []span {
	if strings.IndexByte(text, '@') < 0 {
		return spans
	}
	spans = findURLPasswords(text, spans)
	return findSourcePasswords(text, spans)
}

// maxUserInfo bounds user name and password together, in bytes.
const maxUserInfo = 512

// findURLPasswords finds the password in scheme://user:password@host, and a token in the place of the user.
func findURLPasswords(text string, spans []span) []span {
	const separator = "://"
	for at := 0; ; {
		i := strings.Index(text[at:], separator)
		if i < 0 {
			return spans
		}
		from := at + i + len(separator)
		at = from
		authority := text[from:min(len(text), from+maxUserInfo)]
		if end := strings.IndexAny(authority, " \t\r\n\"'<>"); end >= 0 {
			authority = authority[:end]
		}
		info := userInfo(authority)
		user, password, both := strings.Cut(info, ":")
		switch {
		case both && password != "" && password != mark:
			spans = append(spans, span{from + len(user) + 1, from + len(info), mark})
		case !both && (len(info) >= 20 || mixed(info, 8)) && !strings.Contains(info, mark):
			spans = append(spans, span{from, from + len(info), mark})
		}
	}
}

// userInfo returns the text before the @ of an authority, which other text may follow. A slash ends the authority,
// except in a password that ought to have been escaped: a port is a number.
func userInfo(authority string) string {
	strict := authority
	if end := strings.IndexAny(authority, "/?#\\"); end >= 0 {
		strict = authority[:end]
	}
	if at := strings.LastIndexByte(strict, '@'); at >= 0 {
		return strict[:at]
	}
	_, rest, port := strings.Cut(strict, ":")
	if !port || len(rest) == digits.run(rest, 0) {
		return ""
	}
	return authority[:max(0, strings.LastIndexByte(authority, '@'))]
}

// findSourcePasswords finds the password of data source names without a scheme: user:password@tcp(host)/name,
// user:password@/name, and user/password@//host.
func findSourcePasswords(text string, spans []span) []span {
	last := 0
	for at := 0; ; {
		i := strings.IndexByte(text[at:], '@')
		if i < 0 {
			return spans
		}
		end := at + i
		at = end + 1
		separator := byte(':')
		network := alnum.run(text, at)
		switch {
		case network > at && network < len(text) && text[network] == '(':
		case strings.HasPrefix(text[at:], "//"):
			separator = '/'
		case strings.HasPrefix(text[at:], "/") && !strings.HasSuffix(text[:end], ":"):
		default:
			continue
		}
		from := end
		for from > last && end-from < maxUserInfo && text[from-1] > ' ' && strings.IndexByte(`"'<>`, text[from-1]) < 0 {
			from--
		}
		last = at
		if scheme := strings.LastIndex(text[from:end], "://"); scheme >= 0 {
			from += scheme + len("://")
		}
		colon := strings.IndexByte(text[from:end], separator)
		if colon < 1 {
			continue
		}
		if from += colon + 1; from < end && text[from:end] != mark {
			spans = append(spans, span{from, end, mark})
		}
	}
}
