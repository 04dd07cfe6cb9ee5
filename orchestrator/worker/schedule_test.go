package worker_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/worker"
	"github.com/vibedata/roundhouse/tables"
)

// ids returns the ids of all orchestrations, in order.
func (w *world) ids(t *testing.T) (ids []string) {
	t.Helper()
	for row, err := range tables.ScanAll(t.Context(), w.tables, "orchestrations", tables.Scan{Row: "status"}) {
		if err != nil {
			t.Fatal(err)
		}
		id := must(tables.UnescapeKey(row.Partition))(t)
		ids = append(ids, id)
	}
	return ids
}

// Each slot is started once, on any worker. A bubble begins at midnight UTC of 2000-01-01.
func TestSchedules(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld()
		report := orchestrator.NewOrchestrator("report", func(_ *orchestrator.Context, in string) (string, error) { return in, nil })
		berlin := must(time.LoadLocation("Europe/Berlin"))(t)
		c := w.config(nil, orchestrators(report))
		c.Schedules = []worker.Schedule{
			{Name: "quarters", Cron: "0 */15 * * * *", Orchestrator: "report", Input: []byte(`"q"`)},
			{Name: "morning", Cron: "0 0 9 * * *", Orchestrator: "report", Input: []byte(`"m"`), Location: berlin},
		}
		time.Sleep(7*time.Hour + 18*time.Minute) // the slot of 07:15 was missed, and is within CatchUp
		first, stop1 := mustRun(t, c)
		_, stop2 := mustRun(t, c)
		time.Sleep(50 * time.Minute) // 08:08
		stop1()
		time.Sleep(10 * time.Minute)
		stop2()
		time.Sleep(time.Hour) // no worker runs from 08:30 to 09:15
		_, stop3 := mustRun(t, c)
		time.Sleep(20 * time.Minute) // 09:38
		stop3()
		want := []string{"morning-2000-01-01T08:00:00Z", "quarters-2000-01-01T07:15:00Z", "quarters-2000-01-01T07:30:00Z", "quarters-2000-01-01T07:45:00Z",
			"quarters-2000-01-01T08:00:00Z", "quarters-2000-01-01T08:15:00Z", "quarters-2000-01-01T09:15:00Z", "quarters-2000-01-01T09:30:00Z"}
		if diff := cmp.Diff(want, w.ids(t)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if out := mustEnd(t, first, "morning-2000-01-01T08:00:00Z"); string(out.Output) != `"m"` {
			t.Errorf("%+v", out)
		}
	})
}

// A schedule continues after a slot that an earlier program started with another input: no slot is skipped.
func TestScheduleWithAnotherInput(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld()
		report := orchestrator.NewOrchestrator("report", func(_ *orchestrator.Context, in string) (string, error) { return in, nil })
		var log bytes.Buffer
		for _, input := range []string{`"old"`, `"new"`} {
			c := w.config(nil, orchestrators(report))
			c.Runtime.Log = slog.New(slog.NewTextHandler(&log, nil))
			c.Schedules = []worker.Schedule{{Name: "daily", Cron: "0 0 0 * * *", Orchestrator: "report", Input: []byte(input)}}
			run, stop := mustRun(t, c)
			time.Sleep(time.Minute)
			if out := mustEnd(t, run, "daily-2000-01-01T00:00:00Z"); string(out.Output) != `"old"` {
				t.Errorf("%s: %+v", input, out)
			}
			stop()
		}
		if text := log.String(); strings.Contains(text, "level=ERROR") || !strings.Contains(text, "with another input") {
			t.Errorf("log: %s", text)
		}
	})
}

// Orchestrations are deleted after their retention, and so are unreferenced payloads; the rest stays.
func TestRetention(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld()
		nothing := orchestrator.NewOrchestrator("nothing", func(*orchestrator.Context, string) (string, error) { return "", nil })
		c := w.config(nil, orchestrators(nothing))
		c.Retention, c.MaxPollInterval = 50*time.Hour, time.Minute
		run, stop := mustRun(t, c)
		defer stop()
		orphan := "gone/00000001/" + strings.Repeat("a", 64)
		noError(t, w.blobs.Put(t.Context(), "orchestrations", orphan, []byte("{}")))
		for _, id := range []string{"old", "young"} {
			noError(t, errorOf(worker.Execute(t.Context(), run, nothing, id, "")))
			time.Sleep(40 * time.Hour)
		}
		if diff := cmp.Diff([]string{"young"}, w.ids(t)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if _, err := w.blobs.Get(t.Context(), "orchestrations", orphan); !errors.Is(err, blobs.ErrNotFound) {
			t.Errorf("the payload that nothing names: %v", err)
		}
	})
}
