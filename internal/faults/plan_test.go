package faults_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const table = "things"

func row(key, etag string) tables.Entity {
	return tables.Entity{Key: tables.Key{Partition: "p", Row: key}, ETag: etag, Properties: map[string]any{"n": int64(1)}}
}

// The answer to the caller of an insert, and the state of storage then.
func TestInsert(t *testing.T) {
	t.Parallel()
	tests := map[faults.Fault]struct {
		answer  error
		applied bool
	}{
		faults.None:         {nil, true},
		faults.CrashBefore:  {faults.ErrCrashed, false},
		faults.CrashAfter:   {faults.ErrCrashed, true},
		faults.Applied:      {tables.ErrOutcomeUnknown, true},
		faults.Unknown:      {tables.ErrOutcomeUnknown, false},
		faults.Conflict:     {tables.ErrExists, false},
		faults.Precondition: {tables.ErrThrottled, false}, // no ETag is compared
		faults.Throttled:    {tables.ErrThrottled, false},
		faults.Slow:         {nil, true},
	}
	for _, fault := range append(faults.Faults(), faults.None) {
		t.Run(fault.String(), func(t *testing.T) {
			t.Parallel()
			want, ok := tests[fault]
			if !ok {
				t.Fatal("no expectation")
			}
			synctest.Test(t, func(t *testing.T) {
				inner, plan := tables.NewMemory(), &faults.Plan{At: 1, Fault: fault}
				if err := inner.CreateTable(t.Context(), table); err != nil {
					t.Fatal(err)
				}
				err := faults.Tables(inner, plan.Intercept).Apply(t.Context(), table, tables.Upsert(row("a", "")), tables.Insert(row("b", "")))
				if !errors.Is(err, want.answer) {
					t.Errorf("answer %v, want %v", err, want.answer)
				}
				if blamed, ok := errors.AsType[*tables.OpError](err); ok != (fault == faults.Conflict) || ok && blamed.Index != 1 {
					t.Errorf("blamed: %+v", blamed)
				}
				if _, err := inner.Get(t.Context(), table, tables.Key{Partition: "p", Row: "b"}); (err == nil) != want.applied {
					t.Errorf("stored: %v", err)
				}
				if !plan.Done() || len(plan.Calls()) != 1 {
					t.Errorf("done %v, calls %v", plan.Done(), plan.Calls())
				}
			})
		})
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	inner, messages := tables.NewMemory(), queues.NewMemory()
	store := func(f faults.Fault) tables.Store {
		return faults.Tables(inner, (&faults.Plan{At: 1, Fault: f}).Intercept)
	}
	queue := func(f faults.Fault) queues.Store {
		return faults.Queues(messages, (&faults.Plan{At: 1, Fault: f}).Intercept)
	}
	renew := func(q queues.Store) error {
		_, err := q.Renew(t.Context(), "queue", "id", "receipt", time.Second)
		return err
	}
	get := func(s tables.Store) error {
		_, err := s.Get(t.Context(), table, tables.Key{Partition: "p", Row: "r"})
		return err
	}
	for name, tt := range map[string]struct{ got, want error }{
		"replace, 412":             {store(faults.Precondition).Apply(t.Context(), table, tables.Replace(row("a", "tag"))), tables.ErrPrecondition},
		"replace, 409":             {store(faults.Conflict).Apply(t.Context(), table, tables.Replace(row("a", "tag"))), tables.ErrThrottled},
		"replace of anything, 412": {store(faults.Precondition).Apply(t.Context(), table, tables.Replace(row("a", ""))), tables.ErrThrottled},
		"upsert, 409":              {store(faults.Conflict).Apply(t.Context(), table, tables.Upsert(row("a", ""))), tables.ErrThrottled},
		"get, 409":                 {get(store(faults.Conflict)), tables.ErrThrottled},
		"renew, 409":               {renew(queue(faults.Conflict)), queues.ErrNotFound},
		"delete, 412":              {queue(faults.Precondition).Delete(t.Context(), "queue", "id", "receipt"), queues.ErrPopReceipt},
	} {
		if !errors.Is(tt.got, tt.want) {
			t.Errorf("%s: %v, want %v", name, tt.got, tt.want)
		}
	}
}

// A caller that does not wait long enough does not know the outcome, and storage still carries the call out.
func TestSlowBehindTheCallersBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inner, plan := queues.NewMemory(), &faults.Plan{At: 1, Fault: faults.Slow}
		if err := inner.CreateQueue(t.Context(), "queue"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		begin := time.Now()
		_, err := faults.Queues(inner, plan.Intercept).Send(ctx, "queue", []byte("body"), 0)
		if !errors.Is(err, queues.ErrOutcomeUnknown) || !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != 30*time.Second {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
		if n, err := inner.Length(t.Context(), "queue"); n != 0 || err != nil {
			t.Errorf("too early: %d messages, %v", n, err)
		}
		plan.Wait()
		if n, err := inner.Length(t.Context(), "queue"); n != 1 || err != nil || time.Since(begin) != faults.Slowness {
			t.Errorf("after %v: %d messages, %v", time.Since(begin), n, err)
		}
	})
}
