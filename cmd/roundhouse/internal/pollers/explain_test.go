package pollers

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/cli"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/poller/sink"
)

// explained returns the output of poller explain for a key.
func (d *console) explained(t *testing.T, key string) (e cli.PollerExplanation) {
	t.Helper()
	must(t, json.Unmarshal([]byte(d.want(t, 0, nil, "explain", d.name, key, "-o", "json")), &e))
	return e
}

// The place of a row, the condition of its poller, and the dead letters of this version and of an older one.
func TestExplain(t *testing.T) {
	t.Parallel()
	d := newConsole(t)
	for key, want := range map[string]string{"1": "passed", "2": "delivered", `{"id":3}`: "due", "7": "absent"} {
		if e := d.explained(t, key); e.Verdict != want || e.Place != "2" || e.Condition != "idle" || len(e.DeadLetters) != 0 || (e.CorrelationID == "") != (want == "absent") {
			t.Errorf("%s: %+v, want %s", key, e, want)
		}
	}
	d.want(t, 2, []string{"x", "INTEGER"}, "explain", d.name, "x")
	d.want(t, 3, nil, "explain", "nobody", "1")

	store, err := azure.NewTables(d.account)
	must(t, err)
	letters := engine.NewDeadLetters(store, "")
	must(t, letters.CreateTable(t.Context()))
	dead := func(row poller.Row) {
		t.Helper()
		must(t, sink.DeadLetters(letters, poller.Setting{Name: d.name})(context.WithoutCancel(t.Context()), poller.Quarantined{Poller: d.name, EventID: poller.EventID(d.name, row), Row: row,
			Err: errors.New("nobody takes it"), Attempts: 5, FirstFailureAt: time.Now(), LastFailureAt: time.Now()}))
	}
	now := poller.Row{Key: json.RawMessage(`{"id":1}`), Cursor: poller.Cursor{Kind: "integer", Value: "1"}, Data: json.RawMessage(`{"id":1}`)}
	before, other := now, now
	before.Cursor.Value, other.Key = "0", json.RawMessage(`{"id":2}`)
	dead(now)
	dead(before)
	other.Cursor.Value = "9"
	dead(other)
	e := d.explained(t, "1")
	if len(e.DeadLetters) != 2 || !e.DeadLetters[0].Same || e.DeadLetters[1].Same || e.DeadLetters[0].Status != string(engine.StatusPending) || e.EventID != poller.EventID(d.name, now) {
		t.Errorf("%+v", e)
	}

	failures := poller.TickFailures{Store: d.blob, Poller: d.name}
	must(t, failures.Add(t.Context(), errors.New("the database was away")))
	if e := d.explained(t, "3"); e.Condition != "failing" || e.Problem != "the database was away" {
		t.Errorf("%+v", e)
	}
}

// A plan changes nothing, and reports the poller's progress.
func TestPlan(t *testing.T) {
	t.Parallel()
	d := newConsole(t)
	before, err := d.blob.Load(t.Context(), d.name)
	must(t, err)
	out := d.want(t, 0, []string{"place       2", "not counted since the beginning", "due         1 rows", "index       primary key", "SELECT", "integer", "SEARCH q"}, "plan", d.name)
	if strings.Contains(out, "integer 2") {
		t.Errorf("a value is shown:\n%s", out)
	}
	d.want(t, 0, []string{"integer 2"}, "plan", d.name, "--values")
	d.want(t, 2, []string{"--count 0"}, "plan", d.name, "--count", "0")
	d.want(t, 3, nil, "plan", "nobody")
	after, err := d.blob.Load(t.Context(), d.name)
	must(t, err)
	if before.ETag != after.ETag {
		t.Errorf("a plan changed the state:\n%s", after.Data)
	}
	d.want(t, 0, []string{"after:  at the beginning"}, "reset-to-beginning", d.name, "--yes")
	d.want(t, 0, []string{"place       the beginning", "0 rows since the beginning", "at least 2 rows"}, "plan", d.name, "--count", "2")
	doc := d.state(t)
	doc.Checkpoint = &poller.Checkpoint{Cursor: poller.Cursor{Kind: "integer", Value: "2"}, UpdatedAt: time.Now().UTC(), Metadata: poller.Metadata{RowsTotal: 2}}
	text, err := doc.Encode()
	must(t, err)
	now, err := d.blob.Load(t.Context(), d.name)
	must(t, err)
	_, err = d.blob.Swap(t.Context(), d.name, text, now.ETag)
	must(t, err)
	d.want(t, 0, []string{"2 rows since the beginning"}, "plan", d.name)
}
