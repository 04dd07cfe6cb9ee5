package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"github.com/vibedata/roundhouse/internal/testenv"
)

// Escaped JSON has no character that controls a terminal, and the same value.
func TestEscapeUnprintable(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	for r := range rune(unicode.MaxRune + 1) {
		all.WriteRune(r)
	}
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	testenv.OK(t, encoder.Encode(map[string]string{all.String(): all.String()}))
	escaped := escapeUnprintable(text.String())
	for _, r := range escaped {
		if r != '\n' && !unicode.IsPrint(r) {
			t.Fatalf("%U", r)
		}
	}
	var before, after map[string]string
	testenv.OK(t, json.Unmarshal([]byte(text.String()), &before))
	testenv.OK(t, json.Unmarshal([]byte(escaped), &after))
	testenv.Equal(t, "the value", before, after)
}
