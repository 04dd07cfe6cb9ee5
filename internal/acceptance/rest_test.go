package acceptance

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// entrance is an engine with its queue.
type entrance struct{ engine, queue string }

func at(engine, queue string) entrance { return entrance{engine, queue} }

// message returns the envelope of a message to the engine.
func (e entrance) message(t *testing.T, m engine.Message) string {
	t.Helper()
	m.Engine = e.engine
	body := testenv.Must(json.Marshal(m))(t)
	return string(body)
}

// recorded waits until the history has the end of a run: its operations show before, while the run waits. It reads
// storage directly.
func (p *platform) recorded(t *testing.T, e entrance, correlationID string) []engine.Entry {
	t.Helper()
	var entries []engine.Entry
	testenv.Until(t, "history of "+correlationID, func() bool {
		var err error
		entries, err = engine.NewHistory(p.tables, "").Run(t.Context(), e.engine, correlationID)
		return err == nil && len(entries) > 0 && entries[len(entries)-1].RunStatus != ""
	})
	return entries
}

// rests waits until the history has the end of a run and the engine's queues are empty.
func (p *platform) rests(t *testing.T, e entrance, correlationID string) []engine.Entry {
	t.Helper()
	testenv.Until(t, "the end of "+correlationID+" with empty queues", func() bool {
		p.recorded(t, e, correlationID)
		return p.empty(t, e.queue) && p.empty(t, e.queue+engine.PoisonSuffix)
	})
	return p.recorded(t, e, correlationID)
}

// ran waits until a run is at rest, and checks the traces of exactly one run: exactly these operations in the history,
// "operation of instance status", followed by the end of the run; no dead letter, and empty queues.
func (p *platform) ran(t *testing.T, e entrance, correlationID string, want ...string) []engine.Entry {
	t.Helper()
	entries := p.rests(t, e, correlationID)
	p.checkRun(t, e, correlationID, entries, want)
	return entries
}

// checkRun checks that the history of a run holds these operations, and that it left no dead letter.
func (p *platform) checkRun(t *testing.T, e entrance, correlationID string, entries []engine.Entry, want []string) {
	t.Helper()
	p.checkHistory(t, e, correlationID, entries, want)
	dead, err := engine.NewDeadLetters(p.tables, "").Pending(t.Context(), e.engine, correlationID)
	if err != nil || len(dead) != 0 {
		t.Errorf("dead letters: %v %v", dead, err)
	}
}

// checkHistory compares the history of a run with the expected one, and the API's answer with both.
func (p *platform) checkHistory(t *testing.T, e entrance, correlationID string, entries []engine.Entry, want []string) {
	t.Helper()
	var got, listed []string
	for _, row := range entries {
		got = append(got, strings.TrimSpace(fmt.Sprint(row.Operation, " of ", row.InstanceID, " ", row.Status, " ", row.RunStatus)))
	}
	testenv.Equal(t, "history", want, got)
	for i, row := range p.list(t, "/api/history", url.Values{"engine": {e.engine}, "correlationId": {correlationID}}) {
		listed = append(listed, fmt.Sprint(row["operation"], " of ", row["instanceId"], " ", row["status"]))
		if row["correlationId"] != correlationID || i == 0 && len(entries) > 0 && row["rowKey"] != entries[len(entries)-1].RowKey {
			t.Errorf("the API lists %v", row)
		}
	}
	slices.Reverse(listed) // the newest is first
	for i := range got {
		if i >= len(listed) || !strings.HasPrefix(got[i], listed[i]) {
			t.Errorf("the API lists %q, the history is %q", listed, got)
			break
		}
	}
}

// grave describes an expected dead letter.
type grave struct {
	entrance
	correlationID string
	// body is the original message; ignored when empty.
	body string
	// reason is part of the error.
	reason string
	count  float64
}

// buried waits for the one dead letter of a run, checks it, and checks that the queues are empty.
func (p *platform) buried(t *testing.T, g grave) item {
	t.Helper()
	query := url.Values{"correlationId": {g.correlationID}, "engine": {g.engine}}
	testenv.Until(t, "dead letter of "+g.correlationID, func() bool { return len(p.list(t, "/api/dlq", query)) > 0 })
	p.drained(t, g.queue)
	p.drained(t, g.queue+engine.PoisonSuffix)
	items := p.list(t, "/api/dlq", query)
	if len(items) != 1 {
		t.Fatalf("%d dead letters", len(items))
	}
	d := p.get(t, fmt.Sprintf("/api/dlq/%s/%s", items[0]["engine"], url.PathEscape(items[0]["rowKey"].(string))))
	checkDeadLetter(t, d, g)
	return d
}

func checkDeadLetter(t *testing.T, d item, g grave) {
	t.Helper()
	if g.body != "" && d["originalMessage"] != g.body || g.correlationID != "" && d["correlationId"] != g.correlationID || d["correlationId"] == "" ||
		!strings.Contains(fmt.Sprint(d["errorMessage"]), g.reason) || d["dequeueCount"] != g.count || d["status"] != "Pending" || d["originalQueue"] != g.queue {
		t.Errorf("dead letter %v\nwant %+.1000v", shorten(d), g)
	}
	first, last := parseTime(t, d["firstFailureAtUtc"]), parseTime(t, d["lastFailureAtUtc"])
	if first.IsZero() || first.After(last) || last.After(time.Now()) {
		t.Errorf("failed from %v to %v", first, last)
	}
}

// fates counts the outcomes of the deliveries of a correlation id by the handler's log.
func (p *platform) fates(t *testing.T, correlationID string) map[string]int {
	t.Helper()
	log := testenv.Must(os.ReadFile(p.log))(t)
	fates := map[string]int{}
	for line := range strings.Lines(string(log)) {
		var l struct{ CorrelationID, Fate string }
		if json.Unmarshal([]byte(line), &l) == nil && l.CorrelationID == correlationID && l.Fate != "" {
			fates[l.Fate]++
		}
	}
	return fates
}

// allWell waits until this many deliveries of a correlation id are settled, and checks that none failed: only the
// history and the outside show that each took effect once.
func (p *platform) allWell(t *testing.T, correlationID string, deliveries int) {
	t.Helper()
	var fates map[string]int
	testenv.Until(t, "the fates of "+correlationID, func() bool {
		fates = p.fates(t, correlationID)
		all := 0
		for n := range maps.Values(fates) {
			all += n
		}
		return all >= deliveries
	})
	if fates[string(engine.Succeeded)] == 0 || fates[string(engine.Failed)] != 0 || fates[string(engine.DeadLettered)] != 0 {
		t.Errorf("fates of %d deliveries: %v", deliveries, fates)
	}
}
