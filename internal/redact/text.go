package redact

import (
	"cmp"
	"slices"
	"strings"
)

// Mark replaces a secret.
const Mark = "[redacted]"

const mark = Mark

// Text replaces the secrets of a text by [redacted]. A text without secrets is returned itself.
func Text(text string) string {
	// The text around a removed secret can look like a secret, so a second pass finds more. Rules examine only their
	// neighbourhood, so a few passes find all.
	const most = 4
	for range most {
		spans := find(text)
		if len(spans) == 0 {
			break
		}
		text = replace(text, spans)
	}
	return text
}

// span is a secret part of a text, and its replacement.
type span struct {
	from, to int
	with     string
}

// find returns the secrets of a text. All rules examine the original text, so that none depends on another's
// replacements. They examine it with its escapes, and again without each level of them.
func find(text string) []span { return findAt(text, 0) }

// findAt is find for a text in depth levels of base64. The more levels, the fewer levels of escapes are removed, which
// bounds the work.
func findAt(text string, depth int) []span {
	var spans []span
	quoted := map[int]bool{}
	v, more := view{text: text}, true
	for level := 0; more && level <= maxEscaped*(maxWrapped-1-depth)/2; level++ {
		spans = append(spans, v.find(text, depth, quoted)...)
		if blanks, ok := v.blanks(); ok {
			spans = append(spans, blanks.find(text, depth, quoted)...)
		}
		v, more = v.decoded()
	}
	return spans
}

// find returns the secrets of a view, as parts of the original text; see restore.
func (v view) find(text string, depth int, quoted map[int]bool) []span {
	var spans []span
	for _, rule := range []func(string, []span) []span{findBegun, findMarked, findKeyBlocks, findCredentials, findNamed, findLoose} {
		spans = rule(v.text, spans)
	}
	spans = findWrapped(v.text, spans, depth)
	return spans[:v.restore(text, spans, quoted)]
}

// replace puts the marks into the text. Overlapping secrets become one.
func replace(text string, spans []span) string {
	slices.SortStableFunc(spans, func(a, b span) int { return cmp.Or(a.from-b.from, b.to-a.to) })
	var out strings.Builder
	copied := 0
	for i := 0; i < len(spans); {
		s := spans[i]
		for i++; i < len(spans) && spans[i].from < s.to; i++ {
			s.to = max(s.to, spans[i].to)
		}
		out.WriteString(text[copied:s.from])
		out.WriteString(s.with)
		copied = s.to
	}
	out.WriteString(text[copied:])
	return out.String()
}

// alphabet is a set of bytes.
type alphabet [256]bool

func alphabetOf(ranges string) *alphabet {
	var a alphabet
	for i := 0; i < len(ranges); i++ {
		if i+2 < len(ranges) && ranges[i+1] == '-' {
			for c := ranges[i]; c <= ranges[i+2]; c++ {
				a[c] = true
			}
			i += 2
			continue
		}
		a[ranges[i]] = true
	}
	return &a
}

var (
	alnum       = alphabetOf("a-zA-Z0-9")
	word        = alphabetOf("a-zA-Z0-9_-")
	dotted      = alphabetOf("a-zA-Z0-9_.-")
	hex         = alphabetOf("a-fA-F0-9")
	digits      = alphabetOf("0-9")
	base32      = alphabetOf("A-Z2-7")
	base32Lower = alphabetOf("a-z2-7")
	lower       = alphabetOf("a-z0-9")
	base64      = alphabetOf("a-zA-Z0-9+/")
	wrapped     = alphabetOf("a-zA-Z0-9+/_-")
	crypt       = alphabetOf("a-zA-Z0-9./+$=,_-")
	base64Pad   = alphabetOf("a-zA-Z0-9+/=_-")
	unreserved  = alphabetOf("a-zA-Z0-9_.~-")
	path        = alphabetOf("a-zA-Z0-9_/@%-")
)

// run returns the end of the run of bytes of the alphabet that starts at i.
func (a *alphabet) run(text string, i int) int {
	for i < len(text) && a[text[i]] {
		i++
	}
	return i
}

// begins reports whether a word may start at i: no letter or digit precedes it.
func begins(text string, i int) bool { return i == 0 || !alnum[text[i-1]] }

// begins reports whether a secret of this alphabet and of a fixed length may start at i: it is not the rest of
// something longer. A slash may be that of a path.
func (a *alphabet) begins(text string, i int) bool {
	return i == 0 || !a[text[i-1]] || text[i-1] == '/'
}

// ends reports whether a word may end before i.
func ends(text string, i int) bool { return i == len(text) || !alnum[text[i]] }
