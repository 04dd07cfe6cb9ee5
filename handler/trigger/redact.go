package trigger

import (
	"strings"

	"github.com/vibedata/roundhouse/engine"
)

// maxErrorText bounds what of an error leaves the process, in bytes.
const maxErrorText = 1024

// publicText is the text of an error as it may appear in a log record or an answer: credentials blanked, bounded,
// valid UTF-8.
func publicText(err error) string {
	return printable(engine.Redact(err.Error()))
}

// printable bounds a text that came from outside.
func printable(text string) string {
	if len(text) > maxErrorText {
		text = text[:maxErrorText] + "..."
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
