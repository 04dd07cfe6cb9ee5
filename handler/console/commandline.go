package console

import (
	"regexp"
	"strings"
)

// plainWord is a word that shells leave as it is.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:@%+=,-]+$`)

// commandLine is a command that does in a shell what a page does, "" if a word of it has something that cannot be seen: who copies
// a command has to see all of it.
func commandLine(words ...string) Text {
	quoted := make([]string, len(words))
	for n, w := range words {
		if Text(w).String() != w || strings.ContainsAny(w, "\n\t") {
			return ""
		}
		if quoted[n] = w; !plainWord.MatchString(w) {
			quoted[n] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return Text(strings.Join(quoted, " "))
}

// orchestrationLine is a command for an orchestration. An id that looks like a flag goes behind the flags.
func orchestrationLine(verb, id string, flags ...string) Text {
	words := append([]string{"roundhouse", "orchestration", verb}, flags...)
	if strings.HasPrefix(id, "-") {
		words = append(words, "--")
	}
	return commandLine(append(words, id)...)
}
