package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text is text from outside. For display, invisible characters are replaced by visible ones, so that they neither hide
// anything nor turn the text around them; the template escapes it. Line breaks and tabs stay.
type Text string

// String returns the displayed text.
func (t Text) String() string { return strings.Map(visible, strings.ToValidUTF8(string(t), "\uFFFD")) }

// visible returns a visible character for an invisible one.
func visible(c rune) rune {
	switch {
	case c == '\n' || c == '\t', c == '\u200c' || c == '\u200d': // the latter two join letters, which some languages need
		return c
	case c < ' ': // the pictures of the control characters
		return '\u2400' + c
	case c == 0x7f:
		return '\u2421'
	case unicode.IsControl(c), unicode.In(c, unicode.Cf, unicode.Zl, unicode.Zp): // such as those that turn the direction of writing
		return '\uFFFD'
	default:
		return c
	}
}

const (
	// maxPayload is the displayed size of a message, in bytes, and maxIndented the limit after indenting.
	maxPayload  = 64 << 10
	maxIndented = 4 * maxPayload
	// maxDepth is the depth up to which a document is indented: each level costs a character in every line.
	maxDepth = 64
	// maxLine is the displayed length of an error in a list, in bytes.
	maxLine = 160
)

// Payload is a displayed document.
type Payload struct {
	// Shown is its beginning, indented if it is suitable JSON.
	Shown Text
	// Size is that of the whole document, and Cut means that Shown is not all of it.
	Size int
	Cut  bool

	document string
}

// Tree returns the document as a tree, nil without members or elements.
func (p Payload) Tree() *treeNode { return treeOf(json.RawMessage(p.document)) }

// SizeText returns the displayed size.
func (p Payload) SizeText() string { return size(p.Size) }

// ShownSize returns the size of the displayed part.
func (p Payload) ShownSize() string { return size(maxPayload) }

func payloadOf(document string) Payload {
	p := Payload{Shown: Text(document), Size: len(document), document: document}
	if len(document) > maxPayload {
		p.Shown, p.Cut = Text(cut(document, maxPayload)), true
		return p
	}
	var indented bytes.Buffer // numbers stay unchanged: nothing is decoded
	if depth(document) <= maxDepth && json.Indent(&indented, []byte(document), "", "  ") == nil && indented.Len() <= maxIndented {
		p.Shown = Text(indented.String())
	}
	return p
}

// depth returns the nesting of the brackets in a JSON document, those in its strings included.
func depth(document string) (deepest int) {
	open := 0
	for _, c := range []byte(document) {
		switch c {
		case '{', '[':
			open++
			deepest = max(deepest, open)
		case '}', ']':
			open--
		}
	}
	return deepest
}

// cut returns the beginning of a text, in whole characters.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// line returns a text for lists.
func line(t Text) Text {
	if short := cut(string(t), maxLine); len(short) < len(t) {
		return Text(short) + "…"
	}
	return t
}

// size returns a displayed number of bytes.
func size(n int) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	default:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
}
