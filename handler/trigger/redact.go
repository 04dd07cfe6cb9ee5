package trigger

import (
	"regexp"
	"strings"
)

// maxErrorText bounds what of an error leaves the process, in bytes.
const maxErrorText = 1024

// credential matches what connection strings, signed URLs and authorization headers carry, wherever it stands in a text.
var credential = regexp.MustCompile(`(?i)\b(AccountKey|SharedAccessKey|SharedAccessSignature|sig|code|password|client_secret|x-functions-key|Bearer)(\s*[=: ]\s*)[^&;\s"',]+`)

// publicText is the text of an error as it may appear in a log record or an answer: credentials blanked, bounded,
// valid UTF-8.
func publicText(err error) string {
	return printable(credential.ReplaceAllString(err.Error(), "$1$2[redacted]"))
}

// printable bounds a text that came from outside.
func printable(text string) string {
	if len(text) > maxErrorText {
		text = text[:maxErrorText] + "..."
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
