package check

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// matches reports whether a pattern of the platform's authentication covers a path.
func matches(pattern, path string) bool {
	prefix, any := strings.CutSuffix(pattern, "*")
	return pattern == path || any && strings.HasPrefix(path, prefix)
}

// pathFindings returns the mistakes in the open paths of a template.
func pathFindings(t *testing.T, template string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(filepath.Dir(template), "open-paths.json"))
	var patterns []string
	if err == nil {
		err = json.Unmarshal(text, &patterns)
	}
	if err != nil {
		t.Fatal(err)
	}
	open := map[string]bool{}
	for _, context := range contexts() {
		m := describe(t, context)
		for _, r := range m.Access.Routes {
			open[r.Path] = open[r.Path] || r.Permission == "public" || r.Opens == "engine"
		}
		for _, f := range m.Functions {
			if b := f.Bindings[0]; b.Type == "httpTrigger" && b.AuthLevel == "function" {
				open["/api/"+b.Route] = true // the host asks for a key
			}
		}
	}
	var found []string
	used := map[string]bool{}
	for path, want := range open {
		var by []string
		for _, pattern := range patterns {
			if matches(pattern, path) {
				by, used[pattern] = append(by, pattern), true
			}
		}
		if want != (len(by) > 0) {
			found = append(found, fmt.Sprintf("%s: has to be open: %v; open by %v", path, want, by))
		}
	}
	for _, pattern := range patterns {
		if !used[pattern] {
			found = append(found, pattern+" is open, and no route is there")
		}
	}
	return found
}
