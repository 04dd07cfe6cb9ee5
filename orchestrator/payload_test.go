package orchestrator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/sample"
)

func TestLargePayloadsSpill(t *testing.T) {
	bulky(t)
	t.Parallel()
	w, plan := newWorld(t), &faults.Plan{}
	// Random enough not to compress away, and several rounds of it.
	big := NewActivity("big", func(_ context.Context, size int) (string, error) {
		var b strings.Builder
		for i := 0; b.Len() < size; i++ {
			fmt.Fprintf(&b, "%x", hashOf([]byte(fmt.Sprint(size, i))))
		}
		return b.String()[:size], nil
	})
	length := NewActivity("length", func(_ context.Context, s string) (int, error) { return len(s), nil })
	o := NewOrchestrator("test", func(ctx *Context, sizes []int) (int, error) {
		var all []*Future[string]
		for _, size := range sizes {
			all = append(all, big.Call(ctx, size))
		}
		texts, err := All(all...)
		if err != nil {
			return 0, err
		}
		return length.Call(ctx, strings.Join(texts, "")).Await()
	})
	sizes := []int{100, spillFrom - 3, spillFrom, 900_000, 60_000, 60_001, 60_002, 60_003, 60_004, 60_005, 60_006, 60_007, 60_008, 60_009, 60_010, 60_011, 60_012}
	total := 0
	for _, s := range sizes {
		total += s
	}
	warm := mustRun(t, w.process(t, plan, o, big, length), startOf("a", sizes))
	if string(warm.Output) != fmt.Sprint(total) {
		t.Errorf("output %s, want %d (%v)", warm.Output, total, warm.Failure)
	}
	puts := 0
	for i, c := range plan.Calls() {
		if c.Operation == "Put" {
			puts++
			if plan.Calls()[len(plan.Calls())-1].Operation == "Put" {
				t.Errorf("call %d puts a blob after the last round", i)
			}
		}
	}
	if puts < 3 {
		t.Errorf("%d payloads spilled", puts)
	}
	cold := mustRun(t, w.process(t, nil, o, big, length), startOf("a", sizes))
	for i, c := range cold.Calls {
		if !bytes.Equal(c.Output, warm.Calls[i].Output) {
			t.Errorf("call %d: %d bytes read back of %d", i, len(c.Output), len(warm.Calls[i].Output))
		}
	}
}

// A fan-out that exceeds a round is divided over rounds, even if it hardly compresses, and the process that takes over
// replays it as one turn.
func TestATurnIsDividedOverRounds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		calls, size int
		text        func(size int) string
		rounds      int // the minimum for the turn
	}{
		"many small ones":   {20_000, 100, incompressible, 1},
		"more than a row":   {1_200, 1_000, incompressible, 1},
		"more than a round": {1_200, 60_000, func(size int) string { return strings.Repeat("x", size) }, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.calls*c.size > 1<<20 && !sample.Keep(t) {
				t.Skip("not in this sample")
			}
			w, l := newWorld(t), &ledger{}
			text := c.text(c.size)
			step := NewActivity("step", func(_ context.Context, s string) (int, error) { return l.add("step"), nil })
			o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
				all := make([]*Future[int], n)
				for i := range all {
					all[i] = step.Call(ctx, fmt.Sprint(i, text))
				}
				results, err := All(all...)
				return len(results), err
			})
			out := mustRun(t, w.process(t, nil, o, step), startOf("a", c.calls))
			if out.Status != Completed || string(out.Output) != fmt.Sprint(c.calls) || l.count("step") != c.calls {
				t.Fatalf("%s %s %v, %d calls", out.Status, out.Output, out.Failure, l.count("step"))
			}
			latest := w.stored(t, "a")[0]
			divided := 0
			for divided < len(latest.rounds) && latest.rounds[divided].More {
				divided++
			}
			if divided+1 < c.rounds {
				t.Errorf("%d rounds of one turn, want %d", divided+1, c.rounds)
			}
			history, err := w.process(t, nil, o, step).Export(t.Context(), "a")
			if err := errors.Join(err, Replay(o, history)); err != nil {
				t.Error(err)
			}
		})
	}
}
