package orchestrator

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/internal/faults"
)

func TestLargePayloadsSpill(t *testing.T) {
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

func TestATurnThatDecidesTooMuchFailsWithAName(t *testing.T) {
	t.Parallel()
	w, l := newWorld(t), &ledger{}
	step := NewActivity("step", func(_ context.Context, s string) (int, error) { l.add("step"); return 0, nil })
	o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
		for i := range n {
			step.Call(ctx, hashOf([]byte(fmt.Sprint(i)))+hashOf([]byte(fmt.Sprint(-i))))
		}
		return 0, nil
	})
	out := mustRun(t, w.process(t, nil, o, step), startOf("a", 20_000))
	if out.Status != Failed || !out.Failure.Permanent || !strings.Contains(out.Failure.Message, "the turn after ExecutionStarted") {
		t.Errorf("%s: %v", out.Status, out.Failure)
	}
	if l.count("step") != 0 {
		t.Errorf("%d calls of a round that was not committed ran", l.count("step"))
	}
	w.stored(t, "a")
}
