package tables

import "strings"

// EscapeSegment is EscapeKey for a text that becomes a segment of a blob name, between slashes. Names allow neither a
// dot at the end of a segment nor the characters U+FFFE and U+FFFF. Most texts have the same form in keys and in names.
// UnescapeSegment is the inverse.
func EscapeSegment(s string) string {
	segment := strings.NewReplacer("\ufffe", "=EF=BF=BE", "\uffff", "=EF=BF=BF").Replace(EscapeKey(s))
	if before, dot := strings.CutSuffix(segment, "."); dot {
		return before + "=2E"
	}
	return segment
}

// UnescapeSegment is the inverse of EscapeSegment. A text that is not a result of EscapeSegment is an ErrInvalid.
func UnescapeSegment(s string) (string, error) { return unescape(s, EscapeSegment) }
