package handler_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/handlertest"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
)

// gates is an app whose engine opens gates, but for those that are stuck.
func gates(*handler.Platform) ([]engine.Definition, error) {
	open := orchestrator.NewActivity("open", func(_ context.Context, gate string) (string, error) {
		if gate == "stuck" {
			return "", orchestrator.Permanent(errors.New("it is stuck"))
		}
		return gate, nil
	})
	run := func(ctx *orchestrator.Context, r engine.Request[string]) (string, error) {
		return open.Call(ctx, r.Input).Await()
	}
	return []engine.Definition{{Name: "gates", Queue: "gates-queue", Orchestrator: engine.Orchestrate("gates", run), Operations: []orchestrator.AnyActivity{open}}}, nil
}

// The nightly functions remove what the standard does not have kept any longer: history after 90 days, dead letters 90 days after
// somebody decided about them, and pending ones never.
func TestRowsAreKeptForNinetyDays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := handlertest.New(t, handler.App{Engines: gates}, nil)
		h.Send("gates-queue", `{"correlationId":"well","input":"front"}`)
		for _, id := range []string{"pending", "resolved", "expired"} {
			h.Send("gates-queue", `{"correlationId":"`+id+`","input":"stuck"}`)
		}
		h.Deliver()
		letters := engine.NewDeadLetters(h.Tables, "")
		left := func() (got []string) {
			page, err := letters.List(t.Context(), engine.DeadLetterFilter{Engines: []string{"gates"}})
			testenv.Check(t, err)
			for _, l := range page.DeadLetters {
				got = append(got, l.CorrelationID)
				if status := (map[string]string{"resolved": "Resolved", "expired": "Expired"})[l.CorrelationID]; status != "" && l.Status == engine.StatusPending {
					h.Do(http.MethodPatch, "/api/dlq/gates/"+l.RowKey, `{"status":"`+status+`"}`)
				}
			}
			for _, e := range h.History("gates") {
				got = append(got, "history of "+e.CorrelationID)
			}
			slices.Sort(got)
			return got
		}
		all := strings.Join(left(), ", ")
		const day = 24 * time.Hour
		for _, tt := range []struct {
			wait time.Duration
			want string
		}{{89 * day, all}, {2 * day, "pending"}, {3650 * day, "pending"}} {
			time.Sleep(tt.wait)
			if !h.Tick("retention-timer", time.Now()) {
				t.Error("the retention has failed")
			}
			if got := strings.Join(left(), ", "); got != tt.want || !strings.Contains(all, "history of well") {
				t.Errorf("%v later there are %s, want %s", tt.wait, got, tt.want)
			}
		}
	})
}
