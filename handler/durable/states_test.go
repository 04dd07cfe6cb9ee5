package durable

import (
	"errors"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
)

// turns returns an orchestrator that waits for the event open, or for another one with changed code.
func (b *bench) turns() orchestrator.AnyOrchestrator {
	return orchestrator.NewOrchestrator("Turns", func(ctx *orchestrator.Context, _ string) (string, error) {
		if b.changed.Load() {
			return orchestrator.Event[string](ctx, "another").Await()
		}
		return orchestrator.Event[string](ctx, "open").Await()
	})
}

// flaky returns an orchestrator that fails until it is fixed.
func (b *bench) flaky() orchestrator.AnyOrchestrator {
	return orchestrator.NewOrchestrator("Flaky", func(*orchestrator.Context, string) (string, error) {
		if !b.mended.Load() {
			return "", errors.New("no line")
		}
		return "done", nil
	})
}

// attempt makes an attempt at the instance Retrying, as an engine does for a message.
func (b *bench) attempt(t *testing.T) {
	t.Helper()
	s := orchestrator.Start{ID: "Retrying", Orchestrator: "Flaky", CorrelationID: "c", Input: []byte(`"in"`), WillRetry: true}
	testenv.Must(b.runtime.Run(t.Context(), s))(t)
}

// troubled returns a bench with an instance between two attempts, and a stalled one, named after their states.
func troubled(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	b.attempt(t)
	b.begin(t, "Turns", "Stalled", `"in"`)
	b.changed.Store(true)
	b.raise(t, "Stalled", "open")
	testenv.OK(t, b.list.Flush(t.Context()))
	for _, want := range []orchestrator.Status{orchestrator.Retrying, orchestrator.Stalled} {
		if s, err := b.runtime.Status(t.Context(), string(want)); err != nil || s.Status != want {
			t.Fatalf("%+v, %v", s, err)
		}
	}
	return b
}

func at(id string) string { return base + "/instances/" + id }

func (b *bench) raise(t *testing.T, id, name string) {
	t.Helper()
	if rec := b.send(t, http.MethodPost, at(id)+"/raiseEvent/"+name, `"in"`, "Content-Type", "application/json"); rec.Code != http.StatusAccepted {
		t.Fatalf("%d %s", rec.Code, rec.Body)
	}
	b.drive(t)
}

// The extension has no names for these states: both are Running, without an output, and a list of running instances
// has them.
func TestWhatHasNotEndedRuns(t *testing.T) {
	t.Parallel()
	b := troubled(t)
	for _, id := range []string{"Retrying", "Stalled"} {
		for _, query := range []string{"", "?showInput=false", "?showHistory=true&showHistoryOutput=true"} {
			rec := b.send(t, http.MethodGet, at(id)+query, "")
			got := body[shown](t, rec)
			if rec.Code != http.StatusAccepted || got.RuntimeStatus != orchestrator.Running || string(got.Output) != "null" {
				t.Errorf("%s%s: %d %s", id, query, rec.Code, rec.Body)
			}
			if slices.ContainsFunc(got.HistoryEvents, func(h historyEvent) bool { return h.EventType == "ExecutionCompleted" }) {
				t.Errorf("%s has ended by its history: %s", id, rec.Body)
			}
		}
	}
	for status, want := range map[string][]string{"Running": {"Retrying", "Stalled"}, "ContinuedAsNew": {"Retrying", "Stalled"}, "Failed": nil, "Stalled": {"Retrying", "Stalled"}} {
		var ids []string
		for _, one := range body[[]shown](t, b.send(t, http.MethodGet, base+"/instances?runtimeStatus="+status, "")) {
			ids = append(ids, one.InstanceID)
		}
		slices.Sort(ids)
		testenv.Equal(t, status, want, ids)
	}
	b.changed.Store(false)
	b.mended.Store(true)
	b.attempt(t)
	b.raise(t, "Stalled", "open")
	for id, output := range map[string]string{"Retrying": `"done"`, "Stalled": `"in"`} {
		if got := body[shown](t, b.send(t, http.MethodGet, at(id), "")); got.RuntimeStatus != orchestrator.Completed || string(got.Output) != output {
			t.Errorf("mended: %+v", got)
		}
	}
}

// Requests for them are answered as for running instances.
func TestCommandsToWhatHasNotEnded(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"Retrying", "Stalled"} {
		for _, test := range []struct {
			method, path string
			status       int
			then         orchestrator.Status
		}{
			{http.MethodPost, "/rewind", 400, orchestrator.Status(id)},
			{http.MethodPost, "/restart?restartWithNewInstanceId=false", 409, orchestrator.Status(id)},
			{http.MethodDelete, "", 200, orchestrator.Status(id)},
			{http.MethodPost, "/suspend", 202, orchestrator.Status(id)},
			{http.MethodPost, "/terminate", 202, orchestrator.Terminated},
		} {
			b := troubled(t)
			rec := b.send(t, test.method, at(id)+test.path, "")
			b.drive(t)
			s, err := b.runtime.Status(t.Context(), id)
			if rec.Code != test.status || err != nil || s.Status != test.then {
				t.Errorf("%s%s: %d %s, then %s, %v", id, test.path, rec.Code, rec.Body, s.Status, err)
			}
			if test.then != orchestrator.Terminated {
				continue
			}
			found := body[shown](t, b.send(t, http.MethodGet, at(id)+"?showHistory=true", ""))
			ends := slices.DeleteFunc(found.HistoryEvents, func(h historyEvent) bool { return h.EventType != "ExecutionCompleted" })
			if len(ends) != 1 || ends[0].OrchestrationStatus != orchestrator.Terminated {
				t.Errorf("%s ended %d times: %+v", id, len(ends), ends)
			}
		}
	}
}

// A wait is for the end: neither state ends it, and a successful attempt does.
func TestWaitIsForTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := troubled(t)
		s := &server{Config{Runtime: b.runtime, Timeout: DefaultTimeout}}
		for _, id := range []string{"Retrying", "Stalled"} {
			begin := time.Now()
			ended, err := s.wait(t.Context(), id, patience{time.Minute, time.Second})
			if took := time.Since(begin); ended || err != nil || took != time.Minute {
				t.Errorf("%s: %v, %v after %v", id, ended, err, took)
			}
		}
		b.mended.Store(true)
		time.AfterFunc(10*time.Second, func() { b.attempt(t) })
		begin := time.Now()
		ended, err := s.wait(t.Context(), "Retrying", patience{time.Minute, time.Second})
		if took := time.Since(begin); !ended || err != nil || took > 11*time.Second {
			t.Errorf("%v, %v after %v", ended, err, took)
		}
	})
}
