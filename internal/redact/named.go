package redact

import (
	"slices"
	"strings"
)

// findNamed finds the values of names that look secret: of assignments (password=x, as connection strings, forms and
// command lines have them), of members of JSON at any depth of escaping, of header lines, of printed Go values, of flags
// (--password x) and of XML elements.
func findNamed(text string, spans []span) []span {
	for i := 0; i < len(text); i++ {
		var s span
		var ok bool
		switch c := text[i]; {
		case c == '=' || c == ':':
			s, ok = namedAt(text, i, i+1, c)
		case c == '%' && i+2 < len(text) && text[i+1] == '3':
			switch text[i+2] {
			case 'D', 'd':
				s, ok = namedAt(text, i, i+3, '=')
			case 'A', 'a':
				s, ok = namedAt(text, i, i+3, ':')
			}
		case c == '-' && strings.HasPrefix(text[i:], "--") && (i == 0 || text[i-1] != '-'):
			s, ok = flagAt(text, i)
		case c == '>':
			s, ok = elementAt(text, i)
		}
		if ok {
			spans = append(spans, s)
			i = s.to - 1
		}
	}
	return spans
}

// namedAt returns the secret behind the separator, an equals sign or a colon, that stands from i to next.
func namedAt(text string, i, next int, separator byte) (span, bool) {
	if separator == '=' && next < len(text) && text[next] == '=' {
		return span{}, false // a comparison
	}
	if next < len(text) && text[next] == '>' || separator == ':' && next < len(text) && text[next] == '=' {
		next++ // => and :=
	}
	before := nameBefore(text, i)
	switch {
	case before.name == "":
		return span{}, false
	case secretName(before.name):
	case separator == '=' && before.name == "code" && before.from > 0 && strings.IndexByte("?&", text[before.from-1]) >= 0:
		// The function key of a URL.
	default:
		return span{}, false
	}
	from := skipBlanks(text, next)
	if before.quote != 0 {
		from = skipSpace(text, next)
	}
	s, quoted, ok := quotedAt(text, from)
	switch {
	case quoted && before.quote == 0 && separator == ':':
		return s, ok && before.precedes(text, next, from, text[s.from:s.to])
	case quoted:
		return s, ok
	case from == len(text):
		return span{}, false
	case before.quote != 0:
		return numberAt(text, from, before)
	case separator == ':':
		return headerValueAt(text, from, next, before)
	}
	return assignedAt(text, from, before)
}

// name is a name before a separator.
type name struct {
	name string
	from int
	// quote is the quote around the name, 0 for none; escapes is how many backslashes are before it.
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
		if c := text[end-1]; c == ' ' || c == '\t' || c == '+' {
			end--
		} else if strings.HasSuffix(text[:end], urlBlank) {
			end -= len(urlBlank)
		} else {
			break
		}
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
	from = min(end, afterEscape(text, from))
	return name{name: text[from:end], from: from}
}

// afterEscape returns where a word begins whose first bytes, at i, may belong to an escape: \n, \u0026 or %26.
func afterEscape(text string, i int) int {
	switch {
	case i == 0 || i == len(text):
	case text[i-1] == '%':
		return i + 2
	case text[i-1] == '\\' && text[i] == 'u':
		return i + 5
	case text[i-1] == '\\' && strings.IndexByte("nrt", text[i]) >= 0:
		return i + 1
	}
	return i
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

// quotedAt returns what is between the quotes that begin at i, with or without backslashes before them; quoted says that
// there are quotes. A value whose end is cut off ends with the text.
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
			// A quote within the value has more backslashes before it, which come in pairs of those that are escaped.
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

// numberAt returns the number at i, which is the value of a member of JSON; the mark is put between the member's quotes.
func numberAt(text string, i int, n name) (span, bool) {
	if c := text[i]; !digits[c] && c != '-' || !endsSecret(plainName(n.name)) {
		return span{}, false
	}
	to := i
	for to < len(text) && (dotted[text[to]] || text[to] == '+') {
		to++
	}
	quote := strings.Repeat(`\`, n.escapes) + string(n.quote)
	return span{i, to, quote + mark + quote}, true
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
	to := from
	for to < len(text) && text[to] > ' ' && strings.IndexByte(`"',;<>`, text[to]) < 0 {
		to++
	}
	if i == next {
		to = from + len(strings.TrimRight(text[from:to], "]})"))
	}
	to = from + len(strings.TrimRight(text[from:to], `\`))
	if from == to || strings.HasPrefix(text[from:], mark) || !n.precedes(text, next, i, text[from:to]) {
		return span{}, false
	}
	return span{from, to, mark}, true
}

// precedes reports whether a name without quotes, and the colon that ends before next, stand before a secret and not before
// the rest of a sentence or of an error: the value is at i.
func (n name) precedes(text string, next, i int, value string) bool {
	printed := i == next && n.from > 0 && strings.IndexByte("{[", text[n.from-1]) >= 0 // as fmt prints structs and maps
	switch {
	case slices.Contains(headerNames, plainName(n.name)), printed:
		return true
	case strings.Contains(value, "://"):
		return false
	}
	return likelySecret(value) && (i == next || compound(n.name) && len(value) >= 8)
}

// skipScheme returns the end of the authorization scheme at i.
func skipScheme(text string, i int) int {
	end := alnum.run(text, i)
	from := skipBlanks(text, end)
	if from == end || from == len(text) {
		return i
	}
	switch strings.ToLower(text[i:end]) {
	case "bearer", "basic", "digest", "negotiate", "sharedkey", "sharedkeylite", "token", "apikey":
		return from
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
// delimiters as URLs have them.
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

// withBlanks returns the end of a value of a connection string that has blanks: the semicolon behind to, if it is near.
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

// flagAt returns the value behind a blank of the flag that begins at i.
func flagAt(text string, i int) (span, bool) {
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

// elementAt returns the text of the XML element whose start tag ends at i.
func elementAt(text string, i int) (span, bool) {
	from := i
	for from > 0 && i-from < maxName && (dotted[text[from-1]] || text[from-1] == ':') {
		from--
	}
	if from == i || from == 0 || text[from-1] != '<' || !secretName(text[from:i]) {
		return span{}, false
	}
	length := strings.IndexByte(text[i+1:], '<')
	if length < 1 || !strings.HasPrefix(text[i+1+length:], "</") || text[i+1:i+1+length] == mark {
		return span{}, false
	}
	return span{i + 1, i + 1 + length, mark}, true
}

// skipSpace returns the end of the white space at i.
func skipSpace(text string, i int) int {
	for i < len(text) && strings.IndexByte(" \t\r\n", text[i]) >= 0 {
		i++
	}
	return i
}
