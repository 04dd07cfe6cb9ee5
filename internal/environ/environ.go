// Package environ looks settings up in an environment as the Functions host does: without regard to letter case.
//
// It owns no storage keys.
package environ

import (
	"slices"
	"strings"
)

// Names returns the names in an environment of the form of os.Environ, sorted.
func Names(environment []string) (names []string) {
	for _, line := range environment {
		if name, _, ok := strings.Cut(line, "="); ok && name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Lookup returns a function that looks up names in an environment of the form of os.Environ. The exact name takes
// precedence. Otherwise, of the names that differ in letter case only, the first in sort order counts. An empty
// value counts as not set if another spelling has a value.
func Lookup(environment []string) func(name string) (string, bool) {
	exact, folded := map[string]string{}, map[string]string{}
	for _, line := range slices.Sorted(slices.Values(environment)) {
		// Windows has names that begin with an equals sign.
		name, value, ok := strings.Cut(line, "=")
		if !ok || name == "" {
			continue
		}
		exact[name] = value
		if key := strings.ToUpper(name); folded[key] == "" {
			folded[key] = value
		}
	}
	return func(name string) (string, bool) {
		if value, ok := exact[name]; ok && value != "" {
			return value, true
		}
		value, ok := folded[strings.ToUpper(name)]
		return value, ok
	}
}
