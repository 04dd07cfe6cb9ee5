package console

import (
	"regexp"
	"strings"
)

// plainWord is a word that shells leave unchanged.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:@%+=,-]+$`)

// commandLine returns the shell command that does the same as a page, "" if a word of it has invisible characters: a
// user has to see all of a command that they copy.
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

// orchestrationLine returns a command for an orchestration. An id that looks like a flag goes after the flags.
func orchestrationLine(verb, id string, flags ...string) Text {
	words := append([]string{"roundhouse", "orchestration", verb}, flags...)
	if strings.HasPrefix(id, "-") {
		words = append(words, "--")
	}
	return commandLine(append(words, id)...)
}
