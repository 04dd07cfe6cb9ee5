package redact

import (
	b64 "encoding/base64"
	"html"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// view is a text without one level of escapes. Its byte i comes from at[i] of the original text.
type view struct {
	text string
	at   []int
}

// maxEscaped bounds the removed levels of escapes, maxWrapped those of base64.
const maxEscaped, maxWrapped = 8, 3

// source returns the offset of byte i in the original text.
func (v view) source(i int) int {
	if v.at == nil {
		return i
	}
	return v.at[i]
}

// restore maps spans of the view to the original text, and returns how many remain. In quotes, the escapes mark the end
// of a value, so spans found with escapes win; quoted has the starts of such values.
func (v view) restore(text string, spans []span, quoted map[int]bool) int {
	n := 0
	for _, s := range spans {
		s.from, s.to = v.source(s.from), v.source(s.to)
		if v.at != nil && quoted[s.from] {
			continue
		}
		spans[n] = s
		n++
	}
	for _, s := range spans[:n] {
		if s.from > 0 && text[s.from-1] == '"' && s.to < len(text) && strings.IndexByte(`"\\`, text[s.to]) >= 0 {
			quoted[s.from] = true
		}
	}
	return n
}

// decoded returns the view without one more level of escapes: those of JSON and Go, URLs, HTML and XML, and lookalike
// characters. It returns false if the text has none.
func (v view) decoded() (view, bool) {
	if strings.IndexFunc(v.text, func(r rune) bool { return r == '\\' || r == '%' || r == '&' || r > 0x7f }) < 0 {
		return v, false
	}
	out, at := make([]byte, 0, len(v.text)), make([]int, 0, len(v.text)+1)
	changed := false
	for i := 0; i < len(v.text); {
		n, with, ok := escapeAt(v.text, i)
		if !ok {
			out, at = append(out, v.text[i]), append(at, v.source(i))
			i++
			continue
		}
		changed = true
		for j := range len(with) {
			out, at = append(out, with[j]), append(at, v.source(i))
		}
		i += n
	}
	return view{string(out), append(at, v.source(len(v.text)))}, changed
}

// blanks returns the view with blanks for plus signs, as in URLs; false without any, and as long as other escapes of
// URLs remain.
func (v view) blanks() (view, bool) {
	if !strings.Contains(v.text, "+") {
		return v, false
	}
	for i := range len(v.text) {
		if v.text[i] == '%' && escaped(v.text[i:]) {
			return v, false
		}
	}
	return view{strings.ReplaceAll(v.text, "+", " "), v.at}, true
}

// escapeAt returns the length of the escape at i and its characters.
func escapeAt(text string, i int) (n int, with string, ok bool) {
	const longestEntity = 10
	switch rest := text[i:]; {
	case text[i] == '\\' && len(rest) > 1:
		if at := strings.IndexByte(`"'\/nrtbf`, rest[1]); at >= 0 {
			return 2, "\"'\\/\n\r\t  "[at : at+1], true
		}
		if r, ok := number(rest, 2, 6, 16); rest[1] == 'u' && ok {
			return 6, string(r), true
		}
	case text[i] == '%':
		if r, ok := number(rest, 1, 3, 16); ok {
			return 3, string([]byte{byte(r)}), true
		}
	case text[i] == '&':
		if end := strings.IndexByte(rest[:min(len(rest), longestEntity)], ';'); end > 0 {
			with = html.UnescapeString(rest[:end+1])
			return end + 1, with, with != rest[:end+1]
		}
	case text[i] >= utf8.RuneSelf:
		r, n := utf8.DecodeRuneInString(rest)
		with = lookalike(r)
		return n, with, r != utf8.RuneError && with != rest[:n]
	}
	return 0, "", false
}

// number reads the number in text[from:to].
func number(text string, from, to, base int) (rune, bool) {
	if len(text) < to {
		return 0, false
	}
	n, err := strconv.ParseUint(text[from:to], base, 32)
	return rune(n), err == nil
}

// lookalike returns the ASCII characters that a rune looks like, or the rune itself: a blank, nothing, a full-width
// character, a letter of another alphabet.
func lookalike(r rune) string {
	const others, latin = "аеорсухіѕԁјһԛԝАВЕКМНОРСТХαοεν", "aeopcyxisdjhqwABEKMHOPCTXaoev"
	switch i := strings.IndexRune(others, r); {
	case unicode.Is(unicode.Cf, r):
		return ""
	case unicode.IsSpace(r):
		return " "
	case r >= '！' && r <= '～':
		return string(r - '！' + '!')
	case i >= 0:
		return latin[i/2 : i/2+1] // all of others have two bytes
	}
	return string(r)
}

// findWrapped finds base64 of a text with secrets; depth is how many levels of base64 surround the text.
func findWrapped(text string, spans []span, depth int) []span {
	const least = 16
	if depth == maxWrapped {
		return spans
	}
	for i := 0; i < len(text); i++ {
		from := i
		i = wrapped.run(text, from)
		if i-from < least {
			continue
		}
		if inner := unwrapped(text[from:i]); inner != "" && len(findAt(inner, depth+1)) > 0 {
			for i < len(text) && text[i] == '=' {
				i++
			}
			spans = append(spans, span{from, i, mark})
		}
	}
	return spans
}

// unwrapped decodes base64 without padding, up to the first byte that is not printable.
func unwrapped(text string) string {
	encoding := b64.RawStdEncoding
	if strings.ContainsAny(text, "-_") {
		encoding = b64.RawURLEncoding
	}
	if len(text)%4 == 1 {
		text = text[:len(text)-1]
	}
	inner, _ := encoding.DecodeString(text)
	for i := 0; i < len(inner); {
		r, n := utf8.DecodeRune(inner[i:])
		if r == utf8.RuneError || !unicode.IsPrint(r) && !unicode.IsSpace(r) {
			return string(inner[:i])
		}
		i += n
	}
	return string(inner)
}
