package pollers

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/cli"
	"github.com/vibedata/roundhouse/poller"
)

// maker is a table, and a folder with local.settings.json that has the connection string.
type maker struct {
	file, path string
	env        map[string]string
}

func newMaker(t *testing.T, values string) *maker {
	t.Helper()
	dir := t.TempDir()
	m := &maker{file: filepath.Join(dir, "local.settings.json"), path: filepath.Join(dir, "s3cret", "shop.db"), env: map[string]string{}}
	must(t, os.Mkdir(filepath.Dir(m.path), 0o700))
	db, err := sql.Open("sqlite", m.path)
	must(t, err)
	_, err = db.ExecContext(t.Context(), "create table Order_Items (id integer primary key autoincrement, state text)")
	must(t, err, db.Close(), os.WriteFile(m.file, []byte(strings.Replace(values, "%s", m.path, 1)), 0o640))
	return m
}

// run returns the standard output and the standard error.
func (m *maker) run(t *testing.T, code int, args ...string) (out, notes string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	lookup := func(name string) (string, bool) { v, ok := m.env[name]; return v, ok }
	c := cli.Main{Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr, Lookup: lookup, PollerMaker: Maker{Lookup: lookup}}
	args = append([]string{"poller", "new", "Order_Items", "--dialect", "sqlite", "--setting", "SHOP", "--file", m.file}, args...)
	if got := c.Run(t.Context(), args); got != code {
		t.Errorf("%v: exit code %d, want %d\n%s%s", args, got, code, stdout.String(), stderr.String())
	}
	if strings.Contains(stdout.String()+stderr.String(), "s3cret") {
		t.Errorf("%v: the connection string is in\n%s%s", args, stdout.String(), stderr.String())
	}
	return stdout.String(), stderr.String()
}

const localSettings = `{
  "IsEncrypted": false,
  "Values": {
    "SHOP": "%s",
    "Other": "a <b>"
  },
  "Host": { "CORS": "*" }
}
`

// Standard output has a definition that the app accepts; the reasons and missing parts go to standard error.
func TestNewPoller(t *testing.T) {
	t.Parallel()
	m := newMaker(t, localSettings)
	out, notes := m.run(t, 0, "--engine", "update", "--instance-column", "id")
	settings, err := poller.ParseSettings(out)
	must(t, err)
	if s := settings[0]; s.Name != "order-items" || s.Connection.Setting != "SHOP" || s.Engine.InstanceColumn != "id" || !strings.Contains(string(s.Source), `"cursor": "id"`) {
		t.Errorf("%+v", s)
	}
	for _, want := range []string{"cursor: id, because", "keys: id", "updates are not seen", "CREATE TRIGGER"} {
		if !strings.Contains(notes, want) {
			t.Errorf("no %q in\n%s", want, notes)
		}
	}
	out, _ = m.run(t, 0, "--event-type", "order.changed", "--tenant", "acme", "--name", "orders", "-o", "json")
	var p cli.PollerProposal
	must(t, json.Unmarshal([]byte(out), &p))
	if settings, err = poller.ParseSettings(string(p.Definition)); err != nil || settings[0].Outbox == nil || !p.Ready || len(p.Missing) != 1 {
		t.Errorf("%+v, %v", p, err)
	}
	m.env["SHOP"] = m.path + "-none"
	m.run(t, 5, "--engine", "update")
	_, notes = m.run(t, 2, "--setting", "NONE", "--engine", "update")
	if !strings.Contains(notes, "setting NONE") {
		t.Error(notes)
	}
	if _, notes = m.run(t, 2); !strings.Contains(notes, "exactly one of engine and outbox") {
		t.Error(notes)
	}
	if _, notes = m.run(t, 2, "--engine", "update", "--name", "A"); !strings.Contains(notes, "no name of a poller") {
		t.Error(notes)
	}
}

// The rest of the file stays unchanged, and no existing poller is replaced; nothing is written without a
// confirmation.
func TestNewPollerIsWritten(t *testing.T) {
	t.Parallel()
	for name, values := range map[string]string{
		"first":  localSettings,
		"second": strings.Replace(localSettings, `"Other"`, `"ROUNDHOUSE_POLLERS": "{\"old\":{\"connection\":{\"setting\":\"SHOP\"},\"source\":{\"dialect\":\"sqlite\"},\"deliver\":{\"engine\":{\"engine\":\"update\"}}}}", "Other"`, 1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMaker(t, values)
			before, err := os.ReadFile(m.file)
			must(t, err)
			if _, notes := m.run(t, 4, "--engine", "update", "--write"); !strings.Contains(notes, "not confirmed") {
				t.Error(notes)
			}
			after, err := os.ReadFile(m.file)
			if must(t, err); !bytes.Equal(before, after) {
				t.Errorf("written without a confirmation:\n%s", after)
			}
			m.run(t, 0, "--engine", "update", "--write", "--yes")
			got, err := readValues(m.file)
			must(t, err)
			settings, err := poller.ParseSettings(got[Setting])
			must(t, err)
			var names []string
			for _, s := range settings {
				names = append(names, s.Name)
			}
			if want := map[string]string{"first": "order-items", "second": "old order-items"}[name]; strings.Join(names, " ") != want {
				t.Errorf("pollers %v, want %s", names, want)
			}
			// Without the setting, the text is unchanged.
			after, err = os.ReadFile(m.file)
			must(t, err)
			if name == "first" {
				for line := range strings.SplitSeq(string(before), "\n") {
					if !strings.Contains(string(after), line) {
						t.Errorf("the line %q is gone:\n%s", line, after)
					}
				}
			}
			if info, err := os.Stat(m.file); err != nil || info.Mode().Perm() != 0o640 || got["Other"] != "a <b>" || !strings.Contains(string(after), "a <b>") {
				t.Errorf("%v, %v\n%s", info, err, after)
			}
			if _, notes := m.run(t, 4, "--engine", "update", "--write", "--yes"); !strings.Contains(notes, "already") {
				t.Error(notes)
			}
		})
	}
}

func TestWithValue(t *testing.T) {
	t.Parallel()
	for before, want := range map[string]string{
		`{"Values":{}}`:                                                   "{\"Values\":{\n    \"A\": \"x<\\\"\"}}",
		`{"B":{"A":"1"},"Values":{"B":"A"}}`:                              "{\"B\":{\"A\":\"1\"},\"Values\":{\n    \"A\": \"x<\\\"\",\"B\":\"A\"}}",
		`{"Values":{"C":"1", "A" : "2"},"A":1}`:                           `{"Values":{"C":"1", "A" : "x<\""},"A":1}`,
		"\ufeff// \"Values\"\n{\"Values\":{/* } */\"A\":7,\"B\":true,},}": "\ufeff// \"Values\"\n{\"Values\":{/* } */\"A\":\"x<\\\"\",\"B\":true,},}",
	} {
		got, err := withValue([]byte(before), "A", `x<"`)
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, %v, want %s", before, got, err, want)
		}
	}
	for _, bad := range []string{``, `[]`, `{}`, `{"Values":1}`, `{"Values":{`} {
		if got, err := withValue([]byte(bad), "A", "x"); err == nil {
			t.Errorf("%s: %s", bad, got)
		}
	}
}
