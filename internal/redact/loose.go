package redact

import (
	"slices"
	"strings"
	"unicode"
)

// connectors are words between a name and its value, in lower case.
var connectors = []string{"is", "was", "by", "as", "of", "to", "provided", "used", "supplied", "value", "n", "string", "set"}

// maxGlue bounds the signs and words between a name and its value.
const maxGlue = 8

// findLoose finds the values of secrets that words, columns, brackets or neighbours name: "the password is x", PASSWORD
// 'x', | password | x |, ("x-api-key", "x"), name="password" value="x". Without a separator, the value has to look like
// a secret, unless its place is enough.
func findLoose(text string, spans []span) []span {
	previous := 0 // start of the previous word
	for i := 0; i < len(text); i++ {
		from := i
		if i = word.run(text, from); i == from {
			continue
		}
		if !mayName(text[from:i]) {
			previous = from
			continue
		}
		// The end of a longer word counts.
		name := strings.TrimLeft(text[max(from, i-maxName):i], "-")
		secret := secretName(name) || strings.EqualFold(name, "identified")
		if both := text[max(previous, i-maxName):i]; !secret && previous < from && text[from-1] == ' ' &&
			secretName(both) && endsSecret(plainName(both)) {
			name, secret = both, true // API key
		}
		if previous = from; !secret {
			continue
		}
		if s, ok := looseAt(text, from, i, plainName(name)); ok {
			spans = append(spans, s)
			i = s.to - 1
		} else if s, ok := valueBefore(text, from); ok {
			spans = append(spans, s)
		}
	}
	return spans
}

// mayName reports whether a word may look secret: it ends like such names, apart from a plural and a number.
func mayName(word string) bool {
	end := len(word)
	for end > 0 && (digits[word[end-1]] || end == len(word) && word[end-1]|0x20 == 's') {
		end--
	}
	end = max(end, min(len(word), 2))
	return end >= 2 && (secretEndings[word[end-2]&31][word[end-1]&31] || secretEndings[word[len(word)-2]&31][word[len(word)-1]&31])
}

// secretEndings are the last two letters of names that look secret, in any case.
var secretEndings = func() (table [32][32]bool) {
	for _, word := range slices.Concat(secretWords, secretNames, passwordWords) {
		table[word[len(word)-2]&31][word[len(word)-1]&31] = true
	}
	return table
}()

// passwordWords are the names after which a quoted text is always a secret.
var passwordWords = []string{"password", "passwd", "passphrase", "passcode", "pwd", "identified", "kennwort", "passwort", "motdepasse"}

// passwordName reports whether a plain name is that of a password.
func passwordName(plain string) bool {
	return slices.ContainsFunc(passwordWords, func(w string) bool { return strings.Contains(plain, w) })
}

// looseAt returns the value after the name in text[from:end].
func looseAt(text string, from, end int, plain string) (span, bool) {
	i := end
	for i < len(text) && text[i] == '\\' {
		i++
	}
	nameQuoted := from > 0 && i < len(text) && isQuote(text[i]) && isQuote(text[from-1])
	if i = end; nameQuoted {
		i = closedAt(text, i)
	}
	glue, quote, last := i, byte(0), ""
	if rest := window(text, i)[i:]; nameQuoted && label(text[max(0, from-maxWindow):from]) >= 0 {
		const value = "value"
		if at := strings.Index(rest, value); at >= 0 && !strings.ContainsAny(rest[:at], "{}<>") {
			i, last = closedAt(text, i+at+len(value)), value
		}
	}
	for range maxGlue {
		next := skipSpace(text, i)
		switch {
		case next == len(text) || strings.HasPrefix(text[next:], mark):
			return span{}, false
		case strings.IndexByte("|:=([{<>,-", text[next]) >= 0 && (text[next] != '-' || strings.HasPrefix(text[next:], "->")):
			i = next + 1
			continue
		}
		i = next
		after := i
		for after < len(text) && text[after] == '\\' {
			after++
		}
		if after < len(text) && isQuote(text[after]) {
			if word := alnum.run(text, after+1); word < len(text) && strings.EqualFold(text[after+1:word], "value") {
				i, last = closedAt(text, word), "value" // "value":
				continue
			}
			quote = text[after]
			break
		}
		word := alnum.run(text, i)
		if connector := strings.ToLower(text[i:min(word, i+maxName)]); slices.Contains(connectors, connector) {
			i, last = word, connector
			continue
		}
		break
	}
	if i == end || i >= len(text) {
		return span{}, false
	}
	before := text[glue:i]
	password := passwordName(plain)
	if quote != 0 {
		s, _, ok := quotedAt(window(text, i), i)
		if !ok {
			return span{}, false
		}
		value := text[s.from:s.to]
		pair := nameQuoted && strings.TrimSpace(before) == "," && within(text, from, s.to)
		if strings.IndexFunc(value, unicode.IsLetter) < 0 && strings.IndexFunc(value, unicode.IsDigit) < 0 ||
			last != "value" && !(pair && !secretName(value)) && (!password || strings.Contains(before, ",")) && !looksSecret(value) {
			return span{}, false
		}
		s, _, ok = quotedAt(text, i)
		return s, ok
	}
	value := strings.TrimRight(text[i:wordEnd(window(text, i), i)], ".:!?")
	lines := strings.Contains(before, "\n")
	if named := word.run(text, i); lines && named > i && named < len(text) && strings.IndexByte("=:", text[named]) >= 0 {
		return span{}, false // the next name
	}
	part := lines && nameQuoted && strings.HasSuffix(text[:from-1], "name=") // of a form
	likely := looksSecret(value) || password && len(value) >= leastSecret && !escaped(value) &&
		strings.ContainsAny(value, "0123456789!@#$^*~")
	if value == "" || !(last == "value" && strings.ContainsAny(before, "=:>")) && !part && !likely {
		return span{}, false
	}
	if to := wordEnd(text, i); to > i+maxWindow {
		return span{i, to, mark}, true
	}
	return span{i, i + len(value), mark}, true
}

// wordEnd returns the end of the value at i, which has no blanks, quotes and brackets.
func wordEnd(text string, i int) int {
	for i < len(text) && text[i] > ' ' && strings.IndexByte("\"'`,;<>|)]}&\\", text[i]) < 0 {
		i++
	}
	return i
}

// maxWindow bounds the part of a value, in bytes, that decides whether it is a secret.
const maxWindow = 256

// window returns the text up to the end of the window that starts at i.
func window(text string, i int) string { return text[:min(len(text), i+maxWindow)] }

// closedAt returns the end of the closing quote at i, with the backslashes before it.
func closedAt(text string, i int) int {
	for i < len(text) && text[i] == '\\' {
		i++
	}
	if i < len(text) && isQuote(text[i]) {
		i++
	}
	return i
}

// within reports whether a name and a value in quotes are the only ones between their brackets.
func within(text string, from, to int) bool {
	from = len(strings.TrimRight(text[:from], "\"'`\\ \n"))
	to = closedAt(text, to)
	to = skipSpace(text, to)
	return from > 0 && to < len(text) && strings.IndexByte("([", text[from-1]) >= 0 && strings.IndexByte(")]", text[to]) >= 0
}

// valueBefore returns the value of {"value":"x","name":"password"}, given the start of the name's name.
func valueBefore(text string, from int) (span, bool) {
	const most = 1024
	before := text[max(0, from-most):from]
	at := label(before)
	if at < 0 {
		return span{}, false
	}
	before = strings.TrimRight(before[:at], "\"'\\, \r\n\t")
	end := len(before)
	value := max(strings.LastIndex(before, "value"), strings.LastIndex(before, "Value"))
	if value < 0 {
		return span{}, false
	}
	begin := value + len("value")
	begin += len(before[begin:]) - len(strings.TrimLeft(before[begin:], "\"'\\:= "))
	if begin >= end || strings.ContainsAny(before[begin:end], "\"'{}[]<>") {
		return span{}, false
	}
	shift := from - len(text[max(0, from-most):from])
	return span{shift + begin, shift + end, mark}, true
}

// label returns the start of the label of a name, as in "name":" and key=', which ends the text; -1 without one.
func label(text string) int {
	text = strings.TrimRight(text, `"'\ `)
	if text == "" || strings.IndexByte(":=", text[len(text)-1]) < 0 {
		return -1
	}
	text = strings.TrimRight(text[:len(text)-1], `"'\ `)
	at := len(text)
	for at > 0 && alnum[text[at-1]] {
		at--
	}
	if plain := strings.ToLower(text[at:]); plain != "name" && plain != "key" {
		return -1
	}
	return at
}

func isQuote(c byte) bool { return c == '"' || c == '\'' || c == '`' }

// leastSecret is the minimum length of a secret without a separator before it, in bytes.
const leastSecret = 6

// looksSecret distinguishes a secret from a word, a number, an id, a version and an address.
func looksSecret(value string) bool {
	if len(value) < leastSecret || strings.ContainsAny(value, " \t\n") || strings.Contains(value, "://") || escaped(value) {
		return false
	}
	small, large, figures := kinds(value)
	id := strings.ContainsAny(value, "-./:@") && !(small && large) || strings.HasPrefix(value, "sha")
	return figures && (small || large) && !id
}

// escaped reports whether a value starts with an escape of URLs. Without it, the rules decide.
func escaped(value string) bool {
	if value == "" || value[0] != '%' {
		return strings.HasPrefix(value, "+")
	}
	_, _, ok := escapeAt(value, 0)
	return ok
}

// mixed reports whether a value has letters of both cases and digits, or is a long hexadecimal number, like random
// values that are no ids.
func mixed(value string, least int) bool {
	const leastHex = 32
	small, large, figures := kinds(value)
	return len(value) >= least && base64Pad.run(value, 0) == len(value) &&
		(small && large && figures || len(value) >= leastHex && hex.run(value, 0) == len(value))
}

// kinds returns the kinds of characters of a value.
func kinds(value string) (small, large, figures bool) {
	for i := range len(value) {
		c := value[i]
		small, large, figures = small || c >= 'a' && c <= 'z', large || c >= 'A' && c <= 'Z', figures || digits[c]
	}
	return small, large, figures
}
