package redact

import "strings"

// findKeyBlocks finds private keys in PEM, with line ends intact, escaped or lost. A key without its end extends to the
// end of the text.
func findKeyBlocks(text string, spans []span) []span {
	from, last := strings.Index(text, "PuTTY-User-Key-File"), 0
	for at := 0; ; {
		i, length := privateKeyLabel(text[at:])
		if i < 0 {
			break
		}
		begin, ok := lineBegin(text, at+i)
		at += i + length
		switch {
		case !ok:
		case from < 0 && strings.HasPrefix(text[begin:], "BEGIN"):
			for from = begin; from > 0 && (text[from-1] == '-' || text[from-1] == ' ' && from > 1 && text[from-2] == '-'); from-- {
			}
		case strings.HasPrefix(text[begin:], "END"):
			if from < 0 { // the beginning is cut off
				from = keyLines(text, last, begin)
			}
			for at < len(text) && (text[at] == '-' || strings.HasPrefix(text[at:], " BLOCK-") || strings.HasPrefix(text[at:], " -")) {
				at++
			}
			last = at
			spans = append(spans, span{from, at, mark})
			from = -1
		}
	}
	if from >= 0 {
		spans = append(spans, span{from, len(text), mark})
	}
	return spans
}

// keyLines returns the start of the lines of a key that end before end, at from at the earliest.
func keyLines(text string, from, end int) int {
	at := end
	for at > from && (base64Pad[text[at-1]] || strings.IndexByte(" \r\n", text[at-1]) >= 0) {
		at--
	}
	line := strings.LastIndexAny(strings.TrimRight(text[at:end], "- \r\n"), " ")
	return at + line + 1 // words of a sentence before the key are not part of it
}

// privateKeyLabel finds the label of a private key, and returns its position and length.
func privateKeyLabel(text string) (at, length int) {
	const first = "PRIVATE"
	for from := 0; ; {
		i := strings.Index(text[from:], first)
		if i < 0 {
			return -1, 0
		}
		i += from
		if label := first + " KEY"; strings.HasPrefix(text[i:], label) {
			return i, len(label)
		}
		from = i + len(first)
	}
}

// lineBegin returns the start of the BEGIN or END, after dashes, before the label at i.
func lineBegin(text string, i int) (int, bool) {
	const most = len("-----BEGIN OPENSSH ") + 16
	before := text[max(0, i-most):i]
	at := max(strings.LastIndex(before, "BEGIN"), strings.LastIndex(before, "END"))
	if at < 1 || !strings.HasSuffix(strings.TrimRight(before[:at], " "), "-") {
		return 0, false
	}
	return i - len(before) + at, true
}
