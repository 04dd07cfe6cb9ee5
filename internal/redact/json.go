package redact

import (
	"bytes"
	"encoding/json"
	"strings"
)

// JSON replaces the secrets of a JSON document by "[redacted]". A value is secret when the name of its member looks
// secret, in any case and with any punctuation: secretText, client_secret, accountKey, token, Authorization and so on,
// but not secretName, secretVersion, keyName or tokenType, which describe a secret. In an object or array with such a
// name, all strings and numbers are secret, with the same exceptions. Of {"name": ..., "value": ...} the value is
// secret when the name before it looks secret. All other strings, and the names, are passed through Text; a string that
// holds a document is treated as a document.
//
// Everything else stays as it is, byte for byte: the order of members, the text of numbers, white space. A document
// without secrets is returned itself. A text that is not JSON becomes a JSON string of its redacted text; an empty
// document becomes nil.
func JSON(doc json.RawMessage) json.RawMessage {
	if len(doc) == 0 {
		return nil
	}
	if !json.Valid(doc) {
		return quoted(Text(strings.ToValidUTF8(string(doc), "\ufffd")))
	}
	return document(doc, 0)
}

// Document applies JSON to a text that is a document, and Text to any other.
func Document(text string) string {
	if json.Valid([]byte(text)) {
		return string(document([]byte(text), 0))
	}
	return Text(text)
}

// maxNested bounds the redacted levels of documents in strings of documents.
const maxNested = 8

// document redacts a valid document.
func document(doc []byte, nested int) []byte {
	r := jsonRedactor{doc: doc, nested: nested}
	r.value(no)
	if r.copied == 0 {
		return doc
	}
	return append(r.out, doc[r.copied:]...)
}

// secrecy is the part of a value that its name makes secret.
type secrecy int

const (
	no      secrecy = iota
	weak            // strings that look random
	strict          // strings
	numbers         // strings and numbers
)

// jsonRedactor walks a valid document, and copies it as far as it has to change.
type jsonRedactor struct {
	doc    []byte
	pos    int
	out    []byte
	copied int // of doc, into out
	nested int // number of documents around this one
	least  int // minimum length of a string that weak makes a secret
}

// value walks one value.
func (r *jsonRedactor) value(secret secrecy) {
	switch r.next() {
	case '{':
		r.object(secret)
	case '[':
		r.array(secret)
	case '"':
		start := r.pos
		text := r.text()
		clean := mark
		switch {
		case text == "":
			clean = ""
		case secret == no, secret == weak && !mixed(text, r.least):
			clean = r.clean(text)
		}
		if clean != text {
			r.replace(start, clean)
		}
	default:
		start := r.pos
		r.literal()
		if secret == numbers && bytes.IndexByte([]byte("tfn"), r.doc[start]) < 0 { // true, false and null reveal nothing
			r.replace(start, mark)
		}
	}
}

// clean redacts the text of a string.
func (r *jsonRedactor) clean(text string) string {
	trimmed := strings.TrimLeft(text, " \t\r\n")
	if r.nested < maxNested && trimmed != "" && (trimmed[0] == '{' || trimmed[0] == '[') && json.Valid([]byte(text)) {
		return string(document([]byte(text), r.nested+1))
	}
	return Text(text)
}

func (r *jsonRedactor) object(secret secrecy) {
	r.pos++
	named := false // an earlier member makes "value" a secret
	for r.next() != '}' {
		if r.doc[r.pos] == ',' {
			r.pos++
			continue
		}
		start := r.pos
		name := r.text()
		if clean := Text(name); clean != name {
			r.replace(start, clean)
		}
		r.next()
		r.pos++ // the colon
		r.next()
		plain, start := plainName(name), r.pos
		named = named || plain == "value" && nextNamesSecret(r.doc[r.pos:])
		r.least = leastOf[plain]
		r.value(memberSecrecy(name, plain, secret, named))
		named = named || namesSecret(plain, r.doc[start:r.pos])
	}
	r.pos++
}

// memberSecrecy returns the secrecy of a member; outer is that of its object, and named means that another member makes
// this one's value a secret.
func memberSecrecy(name, plain string, outer secrecy, named bool) secrecy {
	switch {
	case named && plain == "value":
		return numbers
	case outer > weak && !harmless(plain):
		return outer
	case leastOf[plain] > 0:
		return weak
	case !secretName(name):
		return no
	case endsSecret(plain):
		return numbers
	}
	return strict
}

// namesSecret reports whether a member, given its plain name and its JSON, names a secret whose value is in another
// member.
func namesSecret(plain string, value []byte) bool {
	switch plain {
	case "keyname", "secretname":
		return true
	case "name", "key":
		var name string
		return json.Unmarshal(value, &name) == nil && secretName(name)
	}
	return false
}

// nextNamesSecret reports whether the member after the string at the start of a document names a secret.
func nextNamesSecret(doc []byte) bool {
	r := jsonRedactor{doc: doc}
	if r.next() != '"' {
		return false
	}
	r.skipText()
	if r.next() != ',' {
		return false
	}
	r.pos++
	r.next()
	name := r.text()
	r.next()
	r.pos++ // the colon
	if r.next() != '"' {
		return false
	}
	start := r.pos
	r.skipText()
	return namesSecret(plainName(name), r.doc[start:r.pos])
}

func (r *jsonRedactor) array(secret secrecy) {
	r.pos++
	previous, elements := "", 0
	for r.next() != ']' {
		if r.doc[r.pos] == ',' {
			r.pos++
			continue
		}
		start, own := r.pos, secret
		if elements++; elements == 2 && secret == no && secretName(previous) && r.doc[start] == '"' && r.lastText() {
			own = strict // ["x-api-key","..."]
		}
		r.value(own)
		if previous = ""; r.doc[start] == '"' {
			// A string of a valid document cannot fail.
			_ = json.Unmarshal(r.doc[start:r.pos], &previous)
		}
	}
	r.pos++
}

// lastText reports whether the string at pos is the last of its array, and not the name of a secret.
func (r *jsonRedactor) lastText() bool {
	at := jsonRedactor{doc: r.doc, pos: r.pos}
	text := at.text()
	return at.next() == ']' && !secretName(text)
}

// next skips white space and returns the next byte.
func (r *jsonRedactor) next() byte {
	for {
		switch c := r.doc[r.pos]; c {
		case ' ', '\t', '\r', '\n':
			r.pos++
		default:
			return c
		}
	}
}

// text reads the string that starts at pos.
func (r *jsonRedactor) text() string {
	start := r.pos
	r.skipText()
	var s string
	// A string of a valid document cannot fail.
	_ = json.Unmarshal(r.doc[start:r.pos], &s)
	return s
}

// skipText skips the string that starts at pos.
func (r *jsonRedactor) skipText() {
	for r.pos++; r.doc[r.pos] != '"'; r.pos++ {
		if r.doc[r.pos] == '\\' {
			r.pos++
		}
	}
	r.pos++
}

// literal skips a number, true, false or null.
func (r *jsonRedactor) literal() {
	for r.pos < len(r.doc) && bytes.IndexByte([]byte(",]} \t\r\n"), r.doc[r.pos]) < 0 {
		r.pos++
	}
}

// replace replaces the value that ends at pos by a string.
func (r *jsonRedactor) replace(start int, text string) {
	r.out = append(r.out, r.doc[r.copied:start]...)
	r.out = append(r.out, quoted(text)...)
	r.copied = r.pos
}

// quoted returns a text as a JSON string in which < and > are not escaped.
func quoted(text string) []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	// Encoding a string cannot fail.
	_ = encoder.Encode(text)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
