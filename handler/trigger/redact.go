package trigger

import (
	"strings"

	"github.com/vibedata/roundhouse/engine"
)

// maxErrorText bounds an error text in logs and answers, in bytes.
const maxErrorText = 1024

// publicText returns the text of an error for a log record or an answer: redacted, bounded, valid UTF-8.
func publicText(err error) string {
	return printable(engine.Redact(err.Error()))
}

// printable bounds an external text.
func printable(text string) string {
	if len(text) > maxErrorText {
		text = text[:maxErrorText] + "..."
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
