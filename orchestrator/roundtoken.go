package orchestrator

import (
	"encoding/json"
	"strings"
)

// take reads a byte if it is the next one.
func (d *roundReader) take(c byte) bool {
	if d.at < len(d.text) && d.text[d.at] == c {
		d.at++
		return true
	}
	return false
}

// key reads the name of a field.
func (d *roundReader) key() (name []byte, ok bool) {
	token, ok := d.token(stringEnd)
	if !ok || !d.take(':') {
		return nil, false
	}
	return token[1 : len(token)-1], true
}

// value reads any JSON, as a part of the text.
func (d *roundReader) value() (json.RawMessage, bool) { return d.token(jsonEnd) }

func (d *roundReader) literal(name string) bool {
	_, ok := d.token(func(text []byte, at int) (int, bool) { return literalEnd(text, at, name) })
	return ok
}

// token reads up to the end that the function finds. The capacity of the result ends there, so an append does not
// overwrite the text.
func (d *roundReader) token(end func(text []byte, at int) (int, bool)) ([]byte, bool) {
	from := d.at
	to, ok := end(d.text, from)
	if !ok {
		return nil, false
	}
	d.at = to
	return d.text[from:to:to], true
}

// maxDigits is a number of digits that always fits an int64.
const maxDigits = 18

// int reads a whole number of at most maxDigits digits.
func (d *roundReader) int() (n int64, ok bool) {
	negative := d.take('-')
	from := d.at
	for ; d.at < len(d.text) && '0' <= d.text[d.at] && d.text[d.at] <= '9'; d.at++ {
		n = 10*n + int64(d.text[d.at]-'0') // a number that overflows has too many digits
	}
	if digits := d.at - from; digits == 0 || digits > maxDigits || digits > 1 && d.text[from] == '0' {
		return 0, false
	}
	if negative {
		n = -n
	}
	return n, d.at < len(d.text) && (d.text[d.at] == ',' || d.text[d.at] == '}')
}

func (d *roundReader) number() (int, bool) {
	n, ok := d.int()
	return int(n), ok
}

// string reads a string. Names and kinds recur, and are allocated once.
func (d *roundReader) string() (string, bool) {
	token, ok := d.token(stringEnd)
	if !ok {
		return "", false
	}
	text := token[1 : len(token)-1]
	if known, ok := d.names[string(text)]; ok {
		return known, true
	}
	s := string(text)
	if strings.ContainsFunc(s, func(r rune) bool { return r == '\\' || r > '~' }) {
		return s, json.Unmarshal(token, &s) == nil
	}
	if d.names == nil {
		d.names = map[string]string{}
	}
	if len(d.names) < maxNames && len(s) <= maxName {
		d.names[s] = s
	}
	return s, true
}

// These bound the strings that are allocated once.
const (
	maxNames = 256
	maxName  = 64
)
