package sample

import (
	"regexp"
	"runtime/debug"
	"strings"
	"testing"
)

// Repeat logs the command that repeats t alone when t fails. The command is the last line that t logs if t calls Repeat
// before it registers a clean-up. args are flags that the test needs to find the case, such as "-seed=7".
func Repeat(t testing.TB, args ...string) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			t.Log("to repeat: " + command(packagePath(), t.Name(), args...))
		}
	})
}

// command returns the command that repeats the test of this name, for any share.
func command(pkg, name string, args ...string) string {
	elements := strings.Split(name, "/")
	for i, element := range elements {
		elements[i] = "^" + regexp.QuoteMeta(element) + "$"
	}
	pattern := strings.ReplaceAll(strings.Join(elements, "/"), "'", ".") // a quote would end the argument
	return strings.Join(append([]string{Share + "=1 go test", pkg, "-run '" + pattern + "'"}, args...), " ")
}

// packagePath returns the package of the test binary, relative to its module.
func packagePath() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "."
	}
	path, ok := strings.CutPrefix(strings.TrimSuffix(info.Path, ".test"), info.Main.Path)
	if !ok {
		return "."
	}
	return "." + path
}
