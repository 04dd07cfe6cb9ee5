package redact

import (
	"slices"
	"strings"
)

// findNamed finds the values of names that look secret: of assignments (password=x, as in connection strings, forms and
// command lines), of members of JSON at any depth of escaping, of header lines, of printed Go values, of flags
// (--password x) and of XML elements.
func findNamed(text string, spans []span) []span {
	for i := 0; i < len(text); i++ {
		var s span
		var ok bool
		switch c := text[i]; {
		case c == '=' || c == ':':
			s, ok = namedAt(text, i, i+1, c)
		case c == '-' && (i == 0 || !word[text[i-1]]):
			s, ok = flagAt(text, i)
		case c == '<':
			s, ok = elementAt(text, i)
		}
		if ok {
			spans = append(spans, s)
			i = s.to - 1
		}
	}
	return spans
}

// namedAt returns the secret after the separator, an equals sign or a colon, from i to next.
func namedAt(text string, i, next int, separator byte) (span, bool) {
	if separator == '=' && next < len(text) && text[next] == '=' {
		return span{}, false // a comparison
	}
	if next < len(text) && text[next] == '>' || separator == ':' && next < len(text) && text[next] == '=' {
		next++ // => and :=
	}
	before := nameBefore(text, i)
	least := leastOf[plainName(before.name)]
	switch {
	case before.name == "":
		return span{}, false
	case secretName(before.name), least > 0:
	case separator == '=' && before.name == "code" && before.from > 0 && strings.IndexByte("?&", text[before.from-1]) >= 0:
		// The function key of a URL.
	default:
		return span{}, false
	}
	from := skipBlanks(text, next)
	if before.quote != 0 {
		from = skipSpace(text, next)
	}
	quote := from
	for quote < len(text) && quote-from < 2 && alnum[text[quote]] {
		quote++ // N'x'
	}
	s, quoted, ok := quotedAt(text, quote)
	if !quoted {
		s, quoted, ok = quotedAt(text, from)
	}
	switch {
	case least > 0:
		if !quoted {
			s = span{from, assignedEnd(window(text, from), from), mark}
		}
		if !quoted && separator == ':' || !mixed(text[s.from:min(s.to, s.from+maxWindow)], least) {
			return span{}, false
		}
		if !quoted {
			s.to = assignedEnd(text, from)
		}
		return s, true
	case quoted && before.quote == 0 && separator == ':':
		return s, ok && before.precedes(text, next, from, text[s.from:s.to])
	case quoted:
		return s, ok
	case from == len(text):
		return span{}, false
	case before.quote != 0 || strings.IndexByte("[{", text[from]) >= 0:
		return plainAt(text, from, before)
	case separator == ':':
		return headerValueAt(text, from, next, before)
	}
	return assignedAt(text, from, before)
}

// name is a name before a separator.
type name struct {
	name string
	from int
	// quote is the quote around the name, 0 for none; escapes is the number of backslashes before it.
	quote   byte
	escapes int
}

// nameBefore returns the name that ends before i.
func nameBefore(text string, i int) name {
	const mostBlanks = 16
	if i > 0 && text[i-1] == ':' {
		i-- // :=
	}
	end := i
	for end > 0 && i-end < mostBlanks {
		if c := text[end-1]; c != ' ' && c != '\t' {
			break
		}
		end--
	}
	if end == 0 {
		return name{}
	}
	if q := text[end-1]; q == '"' || q == '\'' {
		return quotedName(text, end-1, q)
	}
	from := end
	for from > 0 && end-from < maxName && (dotted[text[from-1]]) {
		from--
	}
	for from < end && (text[from] == '-' || text[from] == '.') {
		from++
	}
	return name{name: text[from:end], from: from}
}

// quotedName returns the name between quotes, of which the later is at closing.
func quotedName(text string, closing int, quote byte) name {
	end := closing
	for end > 0 && text[end-1] == '\\' && closing-end < maxName {
		end--
	}
	from := end
	for from > 0 && end-from < maxName && text[from-1] != quote && text[from-1] != '\\' {
		from--
	}
	return name{name: text[from:end], from: from, quote: quote, escapes: closing - end}
}

// quotedAt returns the text between the quotes at i, with or without backslashes before them; quoted is false without
// quotes. A value without its end extends to the end of the text.
func quotedAt(text string, i int) (s span, quoted, ok bool) {
	open := i
	for open < len(text) && text[open] == '\\' {
		open++
	}
	if open == len(text) || text[open] != '"' && text[open] != '\'' {
		return span{}, false, false
	}
	quote, escapes := text[open], open-i
	from := open + 1
	slashes := 0
	for to := from; to < len(text); to++ {
		switch text[to] {
		case '\\':
			slashes++
			continue
		case quote:
			// A quote within the value has more backslashes before it, in escaped pairs.
			if slashes < escapes || slashes%(2*(escapes+1)) == escapes {
				return valueSpan(text, from, max(from, to-min(slashes, escapes)))
			}
		}
		slashes = 0
	}
	return valueSpan(text, from, len(text))
}

func valueSpan(text string, from, to int) (span, bool, bool) {
	return span{from, to, mark}, true, from < to && !strings.HasPrefix(text[from:to], mark)
}

// plainAt returns the number, object or array at i, which is the value of a member; the mark is put between the
// member's quotes. An object or array without its end extends to the end of the text.
func plainAt(text string, i int, n name) (span, bool) {
	to := i
	switch c := text[i]; {
	case c == '[' || c == '{':
		least := "[]{} ,\t\r\n" // characters that are not part of a secret
		if !endsSecret(plainName(n.name)) {
			least += "0123456789.-"
		}
		if to = bracketsEnd(text, i); strings.Trim(text[i:to], least) == "" || strings.HasPrefix(text[i:], mark) {
			return span{}, false
		}
	case !digits[c] && c != '-' || !endsSecret(plainName(n.name)):
		return span{}, false
	}
	for to < len(text) && (dotted[text[to]] || text[to] == '+') {
		to++
	}
	if n.quote == 0 {
		return span{i, to, mark}, true
	}
	quote := strings.Repeat(`\`, n.escapes) + string(n.quote)
	return span{i, to, quote + mark + quote}, true
}

// bracketsEnd returns the end of the object or array that starts at i. Brackets within quotes do not count.
func bracketsEnd(text string, i int) int {
	depth, quoted := 0, false
	for ; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return i
}

// headerValueAt returns the value at i of a header line, or of a printed Go value, whose colon ends before next.
func headerValueAt(text string, i, next int, n name) (span, bool) {
	plain := plainName(n.name)
	if plain == "cookie" || plain == "setcookie" {
		to := i
		for to < len(text) && text[to] != '\r' && text[to] != '\n' {
			to++
		}
		return span{i, to, mark}, i < to && !strings.HasPrefix(text[i:to], mark)
	}
	from := skipScheme(text, i)
	to := paramsEnd(text, from)
	if i == next {
		to = from + len(strings.TrimRight(text[from:to], "]})"))
	}
	to = from + len(strings.TrimRight(text[from:to], `\`))
	if from == to || strings.HasPrefix(text[from:], mark) || !n.precedes(text, next, i, text[from:to]) {
		return span{}, false
	}
	return span{from, to, mark}, true
}

// paramsEnd returns the end of the value of a header at i: of a word, or of a=b, c="d" and so on.
func paramsEnd(text string, i int) int {
	for to := i; ; {
		named := word.run(text, to)
		param := named > to && named < len(text) && text[named] == '='
		if to > i && !param {
			return i
		}
		for i = to; i < len(text) && text[i] > ' ' && strings.IndexByte(`"',;<>`, text[i]) < 0; i++ {
		}
		if s, quoted, _ := quotedAt(text, i); param && quoted && i == named+1 {
			i = closedAt(text, s.to)
		}
		if !param || i == len(text) || text[i] != ',' {
			return i
		}
		to = skipSpace(text, i+1)
	}
}

// precedes reports whether a name without quotes, and the colon that ends before next, precede a secret and not the
// rest of a sentence or of an error: the value is at i.
func (n name) precedes(text string, next, i int, value string) bool {
	plain := plainName(n.name)
	printed := i == next && n.from > 0 && strings.IndexByte("{[", text[n.from-1]) >= 0 // as fmt prints structs and maps
	switch {
	case slices.Contains(headerNames, plain), printed, strings.HasPrefix(n.name, "X-"),
		i == next && passwordName(plain) && !escaped(value):
		return true
	case strings.Contains(value, "://"), escaped(value):
		return false
	case digits.run(value, 0) < len(value) && value[digits.run(value, 0)] == '&':
		return false // the next parameter
	}
	return likelySecret(value) && (i == next || compound(n.name) && len(value) >= 8)
}

// skipScheme returns the end of the authorization scheme at i.
func skipScheme(text string, i int) int {
	end := word.run(text, i)
	if strings.HasPrefix(text[i:], "v1,") {
		return end + 1 // of Standard Webhooks
	}
	from := skipBlanks(text, end)
	if from == end || from == len(text) {
		return i
	}
	switch scheme := strings.ToLower(text[i:end]); scheme {
	case "bearer", "basic", "digest", "negotiate", "sharedkey", "sharedkeylite", "token", "apikey":
		return from
	default:
		if strings.HasPrefix(scheme, "aws4-") {
			return from
		}
	}
	return i
}

// assignedAt returns the value of an assignment at i.
func assignedAt(text string, i int, n name) (span, bool) {
	to := assignedEnd(text, i)
	if n.from > 0 && text[n.from-1] == ';' {
		to = withBlanks(text, to)
	}
	value := text[i:to]
	switch {
	case value == "", strings.HasPrefix(value, mark):
		return span{}, false
	case n.name == "code" || endsSecret(plainName(n.name)):
		// Numbers count, too.
	case digits.run(value, 0) == len(strings.TrimRight(value, ",.)]}")):
		return span{}, false
	}
	return span{i, to, mark}, true
}

// assignedEnd returns the end of the value of an assignment at i. A backslash before a quote ends it, and so do the
// delimiters of URLs.
func assignedEnd(text string, i int) int {
	for ; i < len(text); i++ {
		switch c := text[i]; {
		case c <= ' ', strings.IndexByte(`;&"'<>`, c) >= 0:
			return i
		case c == '%' && i+2 < len(text) && (text[i+1:i+3] == "26" || text[i+1] == '3' && text[i+2]|0x20 == 'b'):
			return i
		case c == '\\':
			after := i
			for after < len(text) && text[after] == '\\' {
				after++
			}
			if after < len(text) && (text[after] == '"' || text[after] == '\'') {
				return i
			}
			i = after - 1
		}
	}
	return i
}

// withBlanks returns the end of a value of a connection string that has blanks: the semicolon after to, if it is near.
func withBlanks(text string, to int) int {
	const near = 128
	if to == len(text) || text[to] != ' ' {
		return to
	}
	rest := text[to:min(len(text), to+near)]
	if end := strings.IndexAny(rest, ";\"'\r\n"); end >= 0 && rest[end] == ';' {
		return to + end
	}
	return to
}

// flagAt returns the value after a blank of the flag that starts at i, and the password in -u user:password and
// -ppassword.
func flagAt(text string, i int) (span, bool) {
	if !strings.HasPrefix(text[i:], "--") || strings.HasPrefix(text[i:], "--user ") || strings.HasPrefix(text[i:], "--user=") {
		return userFlagAt(text, i)
	}
	from := i + len("--")
	end := word.run(text[:min(len(text), from+maxName)], from)
	value := skipBlanks(text, end)
	if end == from || end == value || value == len(text) || !secretName(text[from:end]) {
		return span{}, false
	}
	if s, quoted, ok := quotedAt(text, value); quoted {
		return s, ok
	}
	to := assignedEnd(text, value)
	if value == to || text[value] == '-' || strings.HasPrefix(text[value:to], mark) {
		return span{}, false
	}
	return span{value, to, mark}, true
}

// userFlagAt returns the password after -u, --user and -p.
func userFlagAt(text string, i int) (span, bool) {
	from := word.run(text[:min(len(text), i+len("--user"))], i)
	password := strings.HasPrefix(text[i:], "-p")
	switch {
	case password:
		from = i + len("-p")
	case text[i:from] != "-u" && text[i:from] != "-U" && text[i:from] != "--user":
		return span{}, false
	}
	if from < len(text) && (text[from] == ' ' || text[from] == '=') {
		from++
	}
	if from < len(text) && isQuote(text[from]) {
		from++
	}
	to := assignedEnd(window(text, from), from)
	if !password {
		colon := strings.IndexByte(text[from:to], ':')
		if from += colon + 1; colon < 0 {
			return span{}, false
		}
	}
	value := text[from:to]
	small, large, figures := kinds(value)
	command := text[max(0, i-maxName):i]
	known := slices.ContainsFunc([]string{"mysql", "mariadb", "sshpass", "login"}, func(c string) bool { return strings.Contains(command, c) })
	random := small && large && figures && looksSecret(value)
	if value == "" || value == mark || password && !known && (!random || !word[value[0]] || strings.ContainsAny(value, "/:.=%")) {
		return span{}, false
	}
	return span{from, assignedEnd(text, from), mark}, true
}

// elementAt returns the text of the XML element whose start tag starts at i.
func elementAt(text string, i int) (span, bool) {
	const mostAttributes, cdata = 512, "<![CDATA["
	i++
	end := i
	for end < len(text) && end-i < maxName && (dotted[text[end]] || text[end] == ':') {
		end++
	}
	tag := strings.IndexAny(text[end:min(len(text), end+mostAttributes)], "<>")
	if end == i || tag < 0 || text[end+tag] == '<' || !secretName(text[i:end]) {
		return span{}, false
	}
	from := end + tag + 1
	if at := skipSpace(text, from); strings.HasPrefix(text[at:], cdata) {
		from = at + len(cdata)
		to := strings.Index(text[from:], "]]>")
		if to < 0 {
			to = len(text) - from
		}
		return span{from, from + to, mark}, to > 0 && text[from:from+to] != mark
	}
	length := strings.IndexByte(text[from:], '<')
	if length < 1 || !strings.HasPrefix(text[from+length:], "</"+text[i:end]) || text[from:from+length] == mark {
		return span{}, false
	}
	return span{from, from + length, mark}, true
}

// skipSpace returns the end of the white space at i.
func skipSpace(text string, i int) int {
	for i < len(text) && strings.IndexByte(" \t\r\n", text[i]) >= 0 {
		i++
	}
	return i
}
