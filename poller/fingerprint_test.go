package poller_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/poller/pollertest"
)

// Each part of a definition is in its fingerprint, and each is in the error that names the change.
func TestFingerprint(t *testing.T) {
	t.Parallel()
	whole := func() poller.Definition {
		return poller.Definition{Database: "db:5432/shop", DatabaseID: "1/16384", Dialect: "postgres", SourceID: "shop", Object: "public.orders", Cursor: "updated_at", Keys: []string{"id", "part"},
			Deleted: "deleted_at", Filter: "region = :region", Params: map[string]any{"region": "eu"}, Bound: "settle"}
	}
	fingerprint, _, err := poller.Fingerprint(whole())
	if err != nil || !strings.HasPrefix(fingerprint, "sha256:") || len(fingerprint) != len("sha256:")+64 {
		t.Fatalf("%s, %v", fingerprint, err)
	}
	if again, _, err := poller.Fingerprint(whole()); err != nil || again != fingerprint {
		t.Errorf("the same definition has the fingerprint %s, %v", again, err)
	}
	for member, change := range map[string]func(*poller.Definition){
		"database":   func(d *poller.Definition) { d.Database, d.DatabaseID = "db:5432/other", "" },
		"databaseId": func(d *poller.Definition) { d.DatabaseID = "2/16384" },
		"dialect":    func(d *poller.Definition) { d.Dialect = "mysql" },
		"sourceId":   func(d *poller.Definition) { d.SourceID = "shop2" },
		"object":     func(d *poller.Definition) { d.Object = "public.invoices" },
		"cursor":     func(d *poller.Definition) { d.Cursor = "created_at" },
		"cursorZone": func(d *poller.Definition) { d.Zone = "Europe/Berlin" },
		"keys":       func(d *poller.Definition) { d.Keys = []string{"part", "id"} },
		"deleted":    func(d *poller.Definition) { d.Deleted = "" },
		"filter":     func(d *poller.Definition) { d.Filter = "" },
		"parameters": func(d *poller.Definition) { d.Params["region"] = "us" },
		"bound":      func(d *poller.Definition) { d.Bound = "xid" },
	} {
		d := whole()
		change(&d)
		if got, _, err := poller.Fingerprint(d); err != nil || got == fingerprint {
			t.Errorf("%s: another one has the same fingerprint: %v", member, err)
		}
		w := newWorld(t)
		w.source.Append(1)
		defined := func(d poller.Definition) *poller.Runner {
			return w.process(nil, func(c *poller.RunnerConfig) { c.Source = defines{w.source, d} })
		}
		w.tick(defined(whole()))
		if _, err := defined(d).Tick(t.Context()); !errors.Is(err, poller.ErrFingerprint) || !strings.Contains(err.Error(), member+": was ") || w.document().Lease.Token != 1 {
			t.Errorf("%s: %v", member, err)
		}
	}
}

// defines is a source with another definition.
type defines struct {
	*pollertest.Source
	definition poller.Definition
}

func (d defines) Definition() poller.Definition { return d.definition }

// After a change of its definition, a poller runs again once it was reset to the beginning. A reset to another position
// is not enough: that position belongs to the old definition.
func TestResetAfterAChangedDefinition(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.state.rewinds = true
		w.source.Append(3)
		w.tick(w.process(nil, nil))
		changed := w.process(nil, func(c *poller.RunnerConfig) { c.Source = redefined{w.source} })
		testenv.Must(w.operator().ResetToCursor(t.Context(), name, place(1), poller.ChangeOptions{}))(t)
		if _, err := changed.Tick(t.Context()); !errors.Is(err, poller.ErrFingerprint) || !strings.Contains(err.Error(), "`roundhouse poller reset-to-beginning orders`") {
			t.Errorf("with another place: %v", err)
		}
		testenv.Must(w.operator().ResetToBeginning(t.Context(), name, poller.ChangeOptions{}))(t)
		if result := w.tick(changed); result.Rows != 3 {
			t.Errorf("%+v", result)
		}
		if _, err := w.process(nil, nil).Tick(t.Context()); !errors.Is(err, poller.ErrFingerprint) {
			t.Errorf("the definition before: %v", err)
		}
	})
}

// A checkpoint of a file has the file's definition, also where the state has none: because the poller was reset to the
// beginning, or because it has only failed since its state was lost.
func TestRestoreKeepsTheDefinition(t *testing.T) {
	for what, forget := range map[string]func(*testing.T, *world){
		"reset to the beginning": func(t *testing.T, w *world) {
			testenv.Must(w.operator().ResetToBeginning(t.Context(), name, poller.ChangeOptions{}))(t)
		},
		"lost, and failing": func(t *testing.T, w *world) {
			testenv.OK(t, w.state.Delete(t.Context(), poller.DefaultContainer, name+".json"))
			w.source.Fail(errors.New("away"))
			w.state.last = nil
			if _, err := w.process(nil, nil).Tick(t.Context()); err == nil {
				t.Fatal("it succeeded")
			}
			w.source.Fail(nil)
		},
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.state.rewinds = true
				w.source.Append(3)
				w.tick(w.process(nil, nil))
				v := testenv.Must(w.operator().Show(t.Context(), name))(t)
				forget(t, w)
				testenv.Must(w.operator().ResetToCheckpoint(t.Context(), name, v.Text, poller.ChangeOptions{}))(t)
				changed := w.process(nil, func(c *poller.RunnerConfig) { c.Source = redefined{w.source} })
				if _, err := changed.Tick(t.Context()); !errors.Is(err, poller.ErrFingerprint) {
					t.Errorf("another definition goes on from the place: %v", err)
				}
				w.source.Append(1)
				if result := w.tick(w.process(nil, nil)); result.Rows != 1 {
					t.Errorf("%+v", result)
				}
			})
		})
	}
}

// Two processes with different definitions, as during a deployment, do not both run: the second one notices before it
// delivers anything, also when both started with a new poller.
func TestTwoDefinitionsAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.source.Append(3)
		meanwhile := func() { w.tick(w.process(nil, nil)) }
		late := w.process(nil, func(c *poller.RunnerConfig) {
			c.Source = redefined{w.source}
			c.Store = &meddled{Store: w.store(), meanwhile: meanwhile}
		})
		if _, err := late.Tick(t.Context()); !errors.Is(err, poller.ErrFingerprint) {
			t.Errorf("got %v", err)
		}
		if d := w.document(); d.Lease.Token != 1 || len(w.tokens) != 1 {
			t.Errorf("token %d, deliveries under %v", d.Lease.Token, w.tokens)
		}
	})
}

// meddled is a store with a concurrent change before the first write.
type meddled struct {
	poller.Store
	meanwhile func()
}

func (m *meddled) Swap(ctx context.Context, name string, data []byte, etag string) (poller.State, error) {
	if before := m.meanwhile; before != nil {
		m.meanwhile = nil
		before()
	}
	return m.Store.Swap(ctx, name, data, etag)
}
