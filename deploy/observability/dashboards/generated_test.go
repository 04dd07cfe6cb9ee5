package dashboards

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	// writeAnew is the environment variable that makes TestGenerated rewrite the files.
	writeAnew = "ROUNDHOUSE_UPDATE_DASHBOARDS"
	folder    = "../grafana"
)

// The files are equal to this package's output, and there are no other files. To rewrite them:
//
//	ROUNDHOUSE_UPDATE_DASHBOARDS=1 go test -run TestGenerated
func TestGenerated(t *testing.T) {
	t.Parallel()
	made, err := Files()
	if err != nil {
		t.Fatal(err)
	}
	want, got := map[string]string{}, map[string]string{}
	for name, text := range made {
		want[name] = string(text)
		if os.Getenv(writeAnew) != "" {
			if err := os.WriteFile(filepath.Join(folder, name), text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, path := range files(t) {
		got[filepath.Base(path)] = read(t, path)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("deploy/observability/grafana (-made +there), make dashboards writes it anew:\n%s", diff)
	}
}

// The UIDs of the dashboards do not change: bookmarks and the links of other dashboards contain them.
func TestUIDs(t *testing.T) {
	t.Parallel()
	got := map[string]string{}
	for name, d := range documents(t) {
		if d.UID+".json" != name {
			t.Errorf("%s has the uid %q", name, d.UID)
		}
		if _, twice := got[d.UID]; twice || d.Title == "" || d.Description == "" || !slices.Equal(d.Tags, []string{"roundhouse"}) {
			t.Errorf("%s: the uid is there twice, or title, description or tag are missing: %q, %q, %q", name, d.Title, d.Description, d.Tags)
		}
		got[d.UID] = d.Title
	}
	want := map[string]string{"roundhouse-overview": "Roundhouse: overview", "roundhouse-engine": "Roundhouse: engines",
		"roundhouse-outbox-and-pollers": "Roundhouse: outbox and pollers", "roundhouse-runtime": "Roundhouse: runtime"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// document is a dashboard as Grafana reads it, limited to the members that the tests use.
type document struct {
	UID, Title, Description string
	Tags                    []string
	Panels                  []drawing
	Links                   []link
	Templating              struct{ List []variable }
	Annotations             struct{ List []annotation }
}

// drawing is a panel or the heading of a row.
type drawing struct {
	ID                       int
	Type, Title, Description string
	Datasource               dataSource
	GridPos                  gridPosition
	Targets                  []target
	Links                    []link
	FieldConfig              struct {
		Defaults struct {
			Unit  string
			Links []link
		}
		Overrides []struct {
			Properties []struct {
				ID    string
				Value json.RawMessage
			}
		}
	}
}

type gridPosition struct{ X, Y, W, H int }

type target struct {
	Expr, RefID, LegendFormat string
	Exemplar, Instant         bool
	Datasource                dataSource
}

type dataSource struct{ Type, UID string }

type link struct{ Title, URL string }

type variable struct {
	Name, Type, Query string
	Current           json.RawMessage
}

type annotation struct {
	Name, TitleFormat string
	Target            target
	Datasource        dataSource
}

// files returns the paths of all dashboards.
func files(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no dashboards: %v", err)
	}
	return paths
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// documents returns all dashboards, by the name of their file.
func documents(t *testing.T) map[string]document {
	t.Helper()
	all := map[string]document{}
	for _, path := range files(t) {
		var d document
		if err := json.Unmarshal([]byte(read(t, path)), &d); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all[filepath.Base(path)] = d
	}
	return all
}

// panelsOf returns the panels of a dashboard without the headings.
func (d document) panelsOf() []drawing {
	return slices.Collect(func(yield func(drawing) bool) {
		for _, p := range d.Panels {
			if p.Type != "row" && !yield(p) {
				return
			}
		}
	})
}

// allLinks returns the links of a dashboard and its panels, including those of fields.
func (d document) allLinks(t *testing.T) []link {
	t.Helper()
	all := slices.Clone(d.Links)
	for _, p := range d.panelsOf() {
		all = append(append(all, p.Links...), p.FieldConfig.Defaults.Links...)
		for _, o := range p.FieldConfig.Overrides {
			for _, property := range o.Properties {
				if property.ID != "links" {
					continue
				}
				var more []link
				if err := json.Unmarshal(property.Value, &more); err != nil {
					t.Fatalf("%s: %v", p.Title, err)
				}
				all = append(all, more...)
			}
		}
	}
	return all
}
