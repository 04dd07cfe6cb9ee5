// Package logstest compares the app's logs with the fields in docs/observability.md.
package logstest

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Root returns the folder of the repository: the first one above the test's with a go.mod.
func Root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no folder above the test's holds go.mod")
		}
		dir = parent
	}
}

var name = regexp.MustCompile("`([A-Za-z_]+)`")

// Fields reads the table of the chapter Logs: the type of each field, one of text, number, time or truth.
func Fields(t *testing.T) map[string]string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(Root(t), "docs", "observability.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, chapter, found := strings.Cut(string(page), "\n## Logs\n")
	if !found {
		t.Fatal("docs/observability.md has no chapter Logs")
	}
	chapter, _, _ = strings.Cut(chapter, "\n## ")
	fields := map[string]string{}
	for line := range strings.Lines(chapter) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || !strings.HasPrefix(strings.TrimSpace(cells[1]), "`") {
			continue
		}
		types := strings.Split(strings.TrimSpace(cells[2]), ", ")
		for i, m := range name.FindAllStringSubmatch(cells[1], -1) {
			fields[m[1]] = types[min(i, len(types)-1)]
		}
	}
	if len(fields) == 0 {
		t.Fatal("the chapter Logs of docs/observability.md has no table of fields")
	}
	return fields
}

// Check checks lines of JSON against the table, and that no line has a field twice. It returns the number of lines.
func Check(t *testing.T, log []byte) (lines int) {
	t.Helper()
	fields := Fields(t)
	for line := range bytes.Lines(log) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		lines++
		d := json.NewDecoder(bytes.NewReader(line))
		if token, err := d.Token(); err != nil || token != json.Delim('{') {
			t.Errorf("no object: %s", line)
			continue
		}
		seen := map[string]bool{}
		for d.More() {
			key, err := d.Token()
			var value any
			if err == nil {
				err = d.Decode(&value)
			}
			if err != nil {
				t.Errorf("%v: %s", err, line)
				break
			}
			field := key.(string)
			if seen[field] {
				t.Errorf("the field %s is there twice: %s", field, line)
			}
			seen[field] = true
			if want, known := fields[field]; !known || !is(value, want) {
				t.Errorf("the field %s, a %s in docs/observability.md: %s", field, want, line)
			}
		}
		if !seen["time"] || !seen["level"] || !seen["msg"] {
			t.Errorf("no time, level or msg: %s", line)
		}
	}
	return lines
}

// is reports whether a value is of a type of the table.
func is(value any, of string) bool {
	switch value := value.(type) {
	case string:
		if of == "time" {
			_, err := time.Parse(time.RFC3339Nano, value)
			return err == nil
		}
		_, err := time.ParseDuration(value)
		return of == "text" && err != nil // a duration is a number of milliseconds
	case float64:
		return of == "number"
	case bool:
		return of == "truth"
	}
	return false
}
