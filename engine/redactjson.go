package engine

import (
	"bytes"
	"encoding/json"
)

// RedactJSON replaces the secrets of a JSON document by "[redacted]". A value is secret when the name of its member
// looks secret, in any case and with any punctuation: secretText, client_secret, accountKey, token, Authorization and
// so on, but not secretName, secretVersion, keyName or tokenType, which describe a secret. In an object or array with
// such a name, all strings and numbers are secret, with the same exceptions. Of {"name": ..., "value": ...} the value
// is secret when the name before it looks secret. All other strings are passed through Redact.
//
// Everything else stays as it is, byte for byte: the order of members, the text of numbers, white space. A document
// without secrets is returned itself. A text that is not JSON becomes a JSON string of its redacted text; an empty
// document becomes nil.
func RedactJSON(doc json.RawMessage) json.RawMessage {
	if len(doc) == 0 {
		return nil
	}
	if !json.Valid(doc) {
		return quoted(Redact(string(doc)))
	}
	r := jsonRedactor{doc: doc}
	r.value(false)
	if r.copied == 0 {
		return doc
	}
	return append(r.out, doc[r.copied:]...)
}

// jsonRedactor walks a valid document, and copies it as far as it has to change.
type jsonRedactor struct {
	doc    []byte
	pos    int
	out    []byte
	copied int // of doc, into out
}

// value walks one value; secret says that its name looks secret.
func (r *jsonRedactor) value(secret bool) {
	switch r.next() {
	case '{':
		r.object(secret)
	case '[':
		r.array(secret)
	case '"':
		start := r.pos
		text := r.text()
		clean := redacted
		if !secret {
			clean = Redact(text)
		}
		if clean != text {
			r.replace(start, clean)
		}
	default:
		start := r.pos
		r.literal()
		if secret && bytes.IndexByte([]byte("tfn"), r.doc[start]) < 0 { // true, false and null reveal nothing
			r.replace(start, redacted)
		}
	}
}

func (r *jsonRedactor) object(secret bool) {
	r.pos++
	named := false // an earlier member says that "value" is a secret
	for r.next() != '}' {
		if r.doc[r.pos] == ',' {
			r.pos++
			continue
		}
		name := r.text()
		r.next()
		r.pos++ // the colon
		r.next()
		plain, start := plainName(name), r.pos
		r.value(secretName(name) || secret && !harmless(plain) || named && plain == "value")
		named = named || namesSecret(plain, r.doc[start:r.pos])
	}
	r.pos++
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

func (r *jsonRedactor) array(secret bool) {
	r.pos++
	for r.next() != ']' {
		if r.doc[r.pos] == ',' {
			r.pos++
			continue
		}
		r.value(secret)
	}
	r.pos++
}

// next skips white space and returns the byte behind it.
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

// text reads the string that begins at pos.
func (r *jsonRedactor) text() string {
	start := r.pos
	for r.pos++; r.doc[r.pos] != '"'; r.pos++ {
		if r.doc[r.pos] == '\\' {
			r.pos++
		}
	}
	r.pos++
	var s string
	// A string of a valid document cannot fail.
	_ = json.Unmarshal(r.doc[start:r.pos], &s)
	return s
}

// literal skips a number, true, false or null.
func (r *jsonRedactor) literal() {
	for r.pos < len(r.doc) && bytes.IndexByte([]byte(",]} \t\r\n"), r.doc[r.pos]) < 0 {
		r.pos++
	}
}

// replace puts a string in place of the value that ends at pos.
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
