package handler

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/handler/trigger"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/catalog"
	"github.com/vibedata/roundhouse/tables"
	"github.com/vibedata/roundhouse/tables/hostlock"
)

// The retention passes by what it cannot read, in every slice, and counts it.
func TestRetentionPassesByDamage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newArchive(t, untouched)
		a.add(t, "done", 2*purgeSlice+1)
		for _, id := range []string{"done0000", "done0099", "done0150"} {
			lost := tables.Delete(tables.Key{Partition: id, Row: "r-00000001-00000001"}, "")
			testenv.Check(t, a.locks.Tables.Apply(t.Context(), "orchestrations", lost))
		}
		var log bytes.Buffer
		a.log = slog.New(slog.NewTextHandler(&log, nil))
		time.Sleep(31 * day)
		for range 2 {
			testenv.Check(t, a.handle(t.Context(), trigger.TimerDelivery{}))
			if n := a.left(t); n != 3 {
				t.Errorf("%d are left, want those that are damaged", n)
			}
		}
		if n := strings.Count(log.String(), "damaged=3"); n != 2 {
			t.Error(log.String())
		}
		if n, err := damaged(a.runtime)(t.Context()); err != nil || n != 3 {
			t.Errorf("%d are counted, %v", n, err)
		}
	})
}

// The list is repaired though the sweep cannot look at something; its error is the run's.
func TestSweeperRepairsBesideATrouble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		refused := 0
		a := newArchive(t, func(ctx context.Context, c faults.Call, next func(context.Context) error) error {
			if c.Target == "orchestrationsParked" && c.Operation == "Query" {
				refused++
				return tables.ErrThrottled
			}
			return next(ctx)
		})
		a.add(t, "done", 3)
		list, err := catalog.New(catalog.Config{Tables: a.locks.Tables, Runtime: func() *orchestrator.Runtime { return a.runtime }})
		if err == nil {
			err = list.Prepare(t.Context())
		}
		testenv.Check(t, err)
		defer list.Close()
		s := sweeper{runtime: a.runtime, list: list, locks: hostlock.Locks{Tables: a.locks.Tables}, log: slog.New(slog.DiscardHandler)}
		for range 2 { // the repair reads in one run, and writes in the next
			if err := s.handle(t.Context(), trigger.TimerDelivery{}); err == nil || refused == 0 {
				t.Errorf("the trouble of the sweep is not told: %v", err)
			}
		}
		if found, _, err := list.List(t.Context(), orchestrator.Filter{}, 10, ""); err != nil || len(found) != 3 {
			t.Errorf("%d are listed, %v", len(found), err)
		}
	})
}
