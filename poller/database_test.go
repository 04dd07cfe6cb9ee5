package poller_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/poller/pollertest"
)

// located is a source with a database.
type located struct {
	*pollertest.Source
	address, id string
}

func (l located) Definition() poller.Definition {
	d := l.Source.Definition()
	d.Database = l.address
	return d
}

func (l located) DatabaseID(context.Context) (string, error) { return l.id, nil }

// A poller continues in the same database at any address, and fails in another one, on every tick, until an operator
// decides.
func TestDatabaseOfACheckpoint(t *testing.T) {
	t.Parallel()
	type at struct{ address, id string }
	for what, c := range map[string]struct {
		was, is, kept at
		fails         bool
	}{
		"the same":                            {at{"db:5432/shop", "1/5"}, at{"db:5432/shop", "1/5"}, at{"db:5432/shop", "1/5"}, false},
		"an upgrade":                          {at{}, at{"db:5432/shop", "1/5"}, at{"db:5432/shop", "1/5"}, false},
		"an upgrade without an id":            {at{}, at{"db:5432/shop", ""}, at{"db:5432/shop", ""}, false},
		"another address":                     {at{"db:5432/shop", ""}, at{"db:5432/copy", ""}, at{}, true},
		"another id at the address":           {at{"db:5432/shop", "1/5"}, at{"db:5432/shop", "2/5"}, at{}, true},
		"another address and id":              {at{"db:5432/shop", "1/5"}, at{"db2:5432/shop", "1/6"}, at{}, true},
		"a failover to another host":          {at{"db:5432/shop", "1/5"}, at{"db2:5432/shop", "1/5"}, at{"db2:5432/shop", "1/5"}, false},
		"the right to read the id was gained": {at{"db:5432/shop", ""}, at{"db:5432/shop", "1/5"}, at{"db:5432/shop", "1/5"}, false},
		"the right to read the id was lost":   {at{"db:5432/shop", "1/5"}, at{"db:5432/shop", ""}, at{"db:5432/shop", "1/5"}, false},
		"moved without the right":             {at{"db:5432/shop", "1/5"}, at{"db2:5432/shop", ""}, at{}, true},
		"a connection of the program's own":   {at{"db:5432/shop", "1/5"}, at{"", "1/5"}, at{"db:5432/shop", "1/5"}, false},
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				runner := func(a at) *poller.Runner {
					return w.process(nil, func(c *poller.RunnerConfig) {
						c.Source = located{w.source, a.address, a.id}
						if a == (at{}) { // an earlier program
							c.Source = w.source
						}
					})
				}
				w.source.Append(3)
				w.tick(runner(c.was))
				next := runner(c.is)
				if !c.fails {
					if result := w.tick(next); !result.Drained {
						t.Errorf("%+v", result)
					}
					var kept struct {
						Database   string `json:"database"`
						DatabaseID string `json:"databaseId"`
					}
					testenv.OK(t, json.Unmarshal(w.document().Definition, &kept))
					if got := (at{kept.Database, kept.DatabaseID}); got != c.kept {
						t.Errorf("the state names %+v, want %+v", got, c.kept)
					}
					token := w.document().Lease.Token
					w.source.Append(1)
					if result := w.tick(next); result.Rows != 1 || w.document().Lease.Token != token+1 {
						t.Errorf("%+v", result)
					}
					return
				}
				for range 2 {
					w.source.Append(1)
					result, err := next.Tick(t.Context())
					if !errors.Is(err, poller.ErrFingerprint) || result.Drained || !strings.Contains(err.Error(), "database") {
						t.Fatalf("%+v, %v", result, err)
					}
					for _, command := range []string{"`roundhouse poller accept-fingerprint orders`", "`roundhouse poller reset-to-beginning orders`"} {
						if !strings.Contains(err.Error(), command) {
							t.Errorf("%v: without %s", err, command)
						}
					}
				}
				if view := testenv.Must(w.operator().Show(t.Context(), name))(t); view.Condition(nil) != poller.Failing {
					t.Errorf("condition %s", view.Condition(nil))
				}
				testenv.Must(w.operator().AcceptFingerprint(t.Context(), name, located{w.source, c.is.address, c.is.id}.Definition(), poller.ChangeOptions{}))(t)
				if result := w.tick(next); result.Rows != 2 {
					t.Errorf("after it was accepted: %+v", result)
				}
			})
		})
	}
}

// A file of an earlier program names no database, and can be restored into a state with one.
func TestRestoreOfACheckpointWithoutADatabase(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.state.rewinds = true
		w.source.Append(3)
		w.tick(w.process(nil, nil))
		old := testenv.Must(w.operator().Show(t.Context(), name))(t).Text
		w.source.Append(2)
		shop := func(id string) *poller.Runner {
			return w.process(nil, func(c *poller.RunnerConfig) { c.Source = located{w.source, "db:5432/shop", id} })
		}
		w.tick(shop("1/5"))
		testenv.Must(w.operator().ResetToCheckpoint(t.Context(), name, old, poller.ChangeOptions{}))(t)
		if result := w.tick(shop("1/5")); result.Rows != 2 {
			t.Errorf("%+v", result)
		}
		file := testenv.Must(w.operator().Show(t.Context(), name))(t).Text
		testenv.Must(w.operator().ResetToBeginning(t.Context(), name, poller.ChangeOptions{}))(t)
		w.tick(shop("2/5"))
		if _, err := w.operator().ResetToCheckpoint(t.Context(), name, file, poller.ChangeOptions{}); !errors.Is(err, poller.ErrFingerprint) {
			t.Errorf("a checkpoint of another database: %v", err)
		}
	})
}
