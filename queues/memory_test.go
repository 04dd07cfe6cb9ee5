package queues_test

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/queues"
)

func TestMemoryTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := queues.NewMemory()
		ctx := t.Context()
		testenv.OK(t, m.CreateQueue(ctx, "work"))
		start := time.Now()
		testenv.Must(m.Send(ctx, "work", []byte("x"), 1500*time.Millisecond))(t)
		receive := func(visibility time.Duration) []queues.Message {
			t.Helper()
			return testenv.Must(m.Receive(ctx, "work", 32, visibility))(t)
		}
		at := func(after time.Duration) { <-time.After(time.Until(start.Add(after))) }

		at(2*time.Second - 1)
		if got := receive(time.Minute); len(got) != 0 {
			t.Errorf("a delay of 1.5 s, rounded up to 2, was over too early")
		}
		at(2 * time.Second)
		first := receive(30 * time.Second)
		if len(first) != 1 || first[0].DequeueCount != 1 || !first[0].NextVisibleAt.Equal(start.Add(32*time.Second)) {
			t.Fatalf("after 2 s: %+v", first)
		}
		at(32*time.Second - 1)
		if got := receive(time.Minute); len(got) != 0 {
			t.Errorf("visible again too early")
		}
		// The visibility has ended without another receiver, so the receipt still holds.
		at(40 * time.Second)
		receipt := testenv.Must(m.Renew(ctx, "work", first[0].ID, first[0].PopReceipt, queues.MaxDelay))(t)
		at(40*time.Second + queues.MaxDelay - 1)
		if got := receive(time.Minute); len(got) != 0 {
			t.Errorf("a renewal of 7 days ended too early")
		}
		at(40*time.Second + queues.MaxDelay)
		second := receive(time.Minute)
		if len(second) != 1 || second[0].DequeueCount != 2 {
			t.Fatalf("after 7 days: %+v", second)
		}
		if err := m.Delete(ctx, "work", first[0].ID, receipt); !errors.Is(err, queues.ErrPopReceipt) {
			t.Errorf("delete with the receipt of before: %v, want %v", err, queues.ErrPopReceipt)
		}
	})
}

func TestMemoryClock(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	m := queues.NewMemory()
	m.Now = func() time.Time { return now }
	testenv.OK(t, m.CreateQueue(t.Context(), "work"))
	testenv.Must(m.Send(t.Context(), "work", []byte("x"), time.Hour))(t)
	for _, want := range []int{0, 1} {
		got, err := m.Receive(t.Context(), "work", 1, time.Minute)
		if err != nil || len(got) != want {
			t.Errorf("at %v: %d messages, %v, want %d", now, len(got), err, want)
		}
		now = now.Add(time.Hour)
	}
}

// Messages are delivered in the order in which they become visible, to one receiver at a time, and none is lost.
func TestMemoryModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(0, 0)
		m := queues.NewMemory()
		m.Now = func() time.Time { return now }
		ctx := t.Context()
		testenv.OK(t, m.CreateQueue(ctx, "work"))
		visible := map[string]time.Time{} // by id
		receipts := map[string]string{}
		span := rapid.Map(rapid.IntRange(0, 30), func(n int) time.Duration { return time.Duration(n) * time.Second })
		anyID := func(t *rapid.T) (id string, ok bool) {
			ids := slices.Sorted(maps.Keys(receipts)) // sorted: the same draw must return the same id
			if len(ids) == 0 {
				return "", false
			}
			return rapid.SampledFrom(ids).Draw(t, "id"), true
		}
		t.Repeat(map[string]func(*rapid.T){
			"send": func(t *rapid.T) {
				delay := span.Draw(t, "delay")
				id := testenv.Must(m.Send(ctx, "work", []byte("x"), delay))(t)
				visible[id] = now.Add(delay)
			},
			"receive": func(t *rapid.T) {
				limit, visibility := rapid.IntRange(1, 5).Draw(t, "limit"), span.Draw(t, "visibility")+time.Second
				due := 0
				for _, at := range visible {
					if !at.After(now) {
						due++
					}
				}
				got, err := m.Receive(ctx, "work", limit, visibility)
				if err != nil || len(got) != min(limit, due) {
					t.Fatalf("received %d, %v, of %d due, limit %d", len(got), err, due, limit)
				}
				last := time.Time{}
				for _, msg := range got {
					if visible[msg.ID].After(now) || visible[msg.ID].Before(last) {
						t.Fatalf("message %s was visible from %v, the one before from %v, now is %v", msg.ID, visible[msg.ID], last, now)
					}
					last = visible[msg.ID]
					visible[msg.ID], receipts[msg.ID] = now.Add(visibility), msg.PopReceipt
				}
			},
			"renew": func(t *rapid.T) {
				id, ok := anyID(t)
				if !ok {
					return
				}
				visibility := span.Draw(t, "visibility")
				receipt := testenv.Must(m.Renew(ctx, "work", id, receipts[id], visibility))(t)
				visible[id], receipts[id] = now.Add(visibility), receipt
			},
			"delete": func(t *rapid.T) {
				id, ok := anyID(t)
				if !ok {
					return
				}
				testenv.OK(t, m.Delete(ctx, "work", id, receipts[id]))
				delete(visible, id)
				delete(receipts, id)
			},
			"wait": func(t *rapid.T) { now = now.Add(span.Draw(t, "span")) },
			"": func(t *rapid.T) {
				if n, err := m.Length(ctx, "work"); n != len(visible) || err != nil {
					t.Fatalf("length %d, %v, want %d", n, err, len(visible))
				}
			},
		})
	})
}

func BenchmarkMemory(b *testing.B) {
	m := queues.NewMemory()
	ctx := b.Context()
	if err := m.CreateQueue(ctx, "work"); err != nil {
		b.Fatal(err)
	}
	for range 10000 {
		if _, err := m.Send(ctx, "work", []byte("waiting"), time.Hour); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if _, err := m.Send(ctx, "work", []byte("hello"), 0); err != nil {
			b.Fatal(err)
		}
		got, err := m.Receive(ctx, "work", 1, time.Minute)
		if err != nil || len(got) != 1 {
			b.Fatal(len(got), err)
		}
		if err := m.Delete(ctx, "work", got[0].ID, got[0].PopReceipt); err != nil {
			b.Fatal(err)
		}
	}
}
