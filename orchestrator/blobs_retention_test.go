package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/sample"
	"github.com/vibedata/roundhouse/tables"
)

// payloads returns the names of all blobs of orchestrations.
func (w *world) payloads(t *testing.T) []string {
	t.Helper()
	names := []string{}
	for name, err := range blobs.All(t.Context(), w.blobs, "orchestrations", "") {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	return names
}

// sweeps removes unneeded blobs that were written before a time.
func (w *world) sweeps(t *testing.T, rt *Runtime, before time.Time, wanted func(context.Context, string) (bool, error)) int {
	t.Helper()
	n, next, err := rt.SweepBlobs(t.Context(), before, "", wanted)
	if err != nil || next != "" {
		t.Fatalf("next %q, %v", next, err)
	}
	return n
}

// needed returns the names that a row needs, by another method than the sweep's: an execution has a round, or a row
// holds the hash in its text.
func (w *world) needed(t *testing.T, names []string) []string {
	t.Helper()
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		parts := strings.Split(name, "/")
		id := must(tables.UnescapeKey(parts[0]))(t)
		for _, row := range w.rows(t, id) {
			if !strings.HasPrefix(row.Row, roundPrefix) {
				continue
			}
			if len(parts) == 3 {
				if strings.HasPrefix(row.Row, roundPrefix+parts[1]+"-") {
					return false
				}
				continue
			}
			r, err := decodeRound(row)
			text, bad := marshal(r)
			noError(t, errors.Join(err, bad))
			if strings.Contains(string(text), parts[1]) {
				return false
			}
		}
		return true
	})
}

// goesOn loads every orchestration, and continues the code of those that have not ended in a process that has to
// replay it.
func (w *world) goesOn(t *testing.T, rt *Runtime) {
	t.Helper()
	all := w.all(t, rt)
	for _, s := range all {
		w.stored(t, s.ID)
		mustGet(t, rt, s.ID)
		if !s.Ended() {
			noError(t, rt.Raise(t.Context(), s.ID, "more", "or less", ""))
		}
	}
	w.serve(t, rt, time.Hour)
	for _, s := range all {
		if now := mustGet(t, rt, s.ID); now.Status == Stalled || !s.Ended() && now.Execution == s.Execution && !now.Ended() {
			t.Errorf("%s was %s in execution %d, and is %s in %d: %v", s.ID, s.Status, s.Execution, now.Status, now.Execution, now.Failure)
		}
	}
}

// serve is a host for some time, which also runs activities.
func (w *world) serve(t *testing.T, rt *Runtime, d time.Duration) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
		for w.runActivities(t.Context(), t, rt) {
		}
		w.attend(t, rt, 10*time.Minute)
	}
}

// large returns a text that no compression shrinks below the size from which a blob holds it.
func large(of string) string {
	var b strings.Builder
	for i := 0; b.Len() < spillFrom+1; i++ {
		b.WriteString(hashOf(fmt.Append(nil, of, i)))
	}
	return b.String()
}

// hoarders are orchestrators that leave payloads everywhere: in inputs, results, read and unread events, and in
// earlier executions.
func hoarders() ([]AnyOrchestrator, []AnyActivity) {
	type in struct {
		Left int
		Pad  string
	}
	fetch := NewActivity("fetch", func(_ context.Context, s string) (string, error) { return large(s), nil })
	fail := NewActivity("fail", func(ctx context.Context, n int) (int, error) {
		if Info(ctx).Execution%2 == 1 {
			return 0, errors.New("not yet")
		}
		return n, nil
	})
	child := NewOrchestrator("child", func(ctx *Context, s string) (string, error) { return fetch.Call(ctx, s+"child").Await() })
	test := NewOrchestrator("test", func(ctx *Context, in in) (int, error) {
		s := fmt.Sprint(ctx.ID(), in.Left)
		got, err := All(fetch.Call(ctx, s), child.Call(ctx, s))
		if err != nil {
			return 0, err
		}
		if _, err := fail.Call(ctx, 1).Await(); in.Left%2 == 1 && err != nil {
			return 0, err
		}
		more, err := Event[string](ctx, "more").Await()
		if err != nil {
			return 0, err
		}
		if in.Left == 0 {
			return len(got[0]), nil
		}
		in.Left, in.Pad = in.Left-1, more
		return 0, ContinueAsNew(in)
	})
	return []AnyOrchestrator{test, child}, []AnyActivity{fetch, fail}
}

// After random histories, with processes that die at any call, every orchestration loads and replays after a sweep.
// Old and unneeded blobs are gone, and young ones remain.
func TestSweepLeavesWhatIsNeeded(t *testing.T) {
	t.Parallel()
	swept := 0
	for _, seed := range sample.Seeds(t, 60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			sample.Repeat(t)
			synctest.Test(t, func(t *testing.T) { swept += sweepAfter(t, uint64(seed)) })
		})
	}
	if all := sample.Size(t, 60, 1) == 60; all && swept == 0 {
		t.Error("nothing was ever left")
	}
}

// sweepAfter does random things to two orchestrations, sweeps, and returns how many payloads were deleted.
func sweepAfter(t *testing.T, seed uint64) (swept int) {
	chance := rand.New(rand.NewPCG(seed, 0))
	w := newWorld(t)
	orchestrators, activities := hoarders()
	alive := w.signalling(t, nil, orchestrators, activities)
	for range 3 + chance.IntN(12) {
		plan := &faults.Plan{}
		if chance.IntN(2) == 0 {
			all := faults.Faults()
			plan.At, plan.Fault = 1+chance.IntN(30), all[chance.IntN(len(all))]
		}
		rt, id := w.signalling(t, plan, orchestrators, activities), string(rune('a'+chance.IntN(2)))+"/b"
		switch chance.IntN(8) {
		case 0, 1:
			_, _ = rt.Start(t.Context(), startOf(id, map[string]any{"Left": chance.IntN(4), "Pad": large("in")}))
		case 2, 3, 4:
			_ = rt.Raise(t.Context(), id, []string{"more", "more", "unread"}[chance.IntN(3)], large(fmt.Sprint(chance.IntN(3))), "")
		case 5:
			_, _ = rt.Restart(t.Context(), id, "")
		case 6:
			_, _ = rt.Rewind(t.Context(), id, "")
		default:
			_ = rt.Purge(t.Context(), id)
		}
		for range chance.IntN(4) {
			w.deliverOrGiveUp(t, rt)
		}
		plan.Wait()
		time.Sleep(time.Hour)
	}
	if chance.IntN(2) == 0 { // some messages are still undelivered: the payloads they name remain
		swept += w.sweeps(t, alive, time.Now().Add(time.Hour), func(context.Context, string) (bool, error) { return true, nil })
	}
	w.serve(t, alive, 6*time.Hour)
	before := w.payloads(t)
	if n := w.sweeps(t, alive, time.Now().Add(-48*time.Hour), nil); n != 0 {
		t.Errorf("%d went that are young", n)
	}
	n := w.sweeps(t, alive, time.Now().Add(time.Hour), nil)
	swept += n
	after := w.payloads(t)
	if diff := cmp.Diff(w.needed(t, before), after); diff != "" || n != len(before)-len(after) {
		t.Errorf("%d removed, left (-needed +there):\n%s", n, diff)
	}
	w.goesOn(t, w.signalling(t, nil, orchestrators, activities))
	return swept
}

// The reasons to keep each payload, and names of other kinds.
func TestWhatPayloadsNeedToStay(t *testing.T) {
	t.Parallel()
	w, l := newWorld(t), &ledger{}
	orchestrators, activities := withEvents(l)
	rt := w.signalling(t, nil, orchestrators, activities)
	mustRun(t, rt, startOf("a/b", 1))
	mustRun(t, rt, startOf("bad", 1))
	mustRun(t, rt, startOf("odd", 1))
	w.apply(t, tables.Upsert(tables.Entity{Key: tables.Key{Partition: "bad", Row: roundKey(1, 2)}, Properties: map[string]any{columnEncoding: "none"}}))
	w.apply(t, tables.Upsert(tables.Entity{Key: tables.Key{Partition: "odd", Row: roundPrefix + "x"}, Properties: map[string]any{columnEncoding: "none"}}))
	w.apply(t, tables.Upsert(tables.Entity{Key: tables.Key{Partition: "purged", Row: purgeRow}}))
	claimed, whole := hashOf([]byte("claimed")), hashOf([]byte("round"))
	w.apply(t, tables.Upsert(tables.Entity{Key: tables.Key{Partition: "whole", Row: roundKey(1, 1)}, Properties: map[string]any{columnBlob: whole}}))
	inherited := hashOf([]byte("inherited"))
	columns, _, err := new(codec).encode(new(roundBuffers), round{Learned: []event{{Kind: executionStarted, Inherited: &inheritance{Unread: []event{{Kind: eventRaised, Blob: inherited}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	w.apply(t, tables.Upsert(tables.Entity{Key: tables.Key{Partition: "heir", Row: roundKey(7, 1)}, Properties: columns}))
	const other = "00000000000000000000000000000000000000000000000000000000000000aa"
	for name, stays := range map[string]bool{
		"a=2Fb/00000001/" + other:              true,
		"a=2Fb/00000002/" + other:              false,
		"a=2Fb/" + other:                       false,
		"a=2Fb/" + claimed:                     true, // by a message
		"bad/" + other:                         true,
		"bad/00000001/" + other:                true,
		"bad/00000007/" + other:                false,
		"odd/00000007/" + other:                true,
		"purged/00000001/" + other:             false,
		"gone/" + other:                        false,
		"gone/00000001/" + other:               false,
		"whole/" + whole:                       true,
		"heir/" + inherited:                    true,
		"heir/" + other:                        false,
		"whole/" + other:                       false,
		"gone/1/" + other:                      true, // no runtime writes such names
		"gone/00000000/" + other:               true,
		"gone/00000001/x/" + other:             true,
		"gone/" + other[2:]:                    true,
		"gone/" + other[2:] + "zz":             true,
		"a%b/" + other:                         true,
		other:                                  true,
		strings.Repeat("=41", 3) + "/" + other: true,
	} {
		if err := w.blobs.Put(t.Context(), "orchestrations", name, nil); err != nil {
			t.Fatal(name, err)
		}
		want := 1
		if stays {
			want = 0
		}
		asked := func(_ context.Context, id string) (bool, error) { return strings.HasSuffix(name, claimed), nil }
		if n := w.sweeps(t, rt, time.Now().Add(time.Hour), asked); n != want {
			t.Errorf("%s: %d went, want %d", name, n, want)
		}
		noError(t, w.blobs.Delete(t.Context(), "orchestrations", name))
	}
	no := errors.New("no line")
	noError(t, w.blobs.Put(t.Context(), "orchestrations", "gone/"+other, nil))
	if n, _, err := rt.SweepBlobs(t.Context(), time.Now().Add(time.Hour), "", func(context.Context, string) (bool, error) { return false, no }); n != 0 || !errors.Is(err, no) {
		t.Errorf("%d went without an answer: %v", n, err)
	}
}

// The blobs of attempts whose rows are kept are kept, too, also after a continue-as-new: the next attempt reads a
// large event from them.
func TestBlobsOfAttemptsThatAreKept(t *testing.T) {
	for _, again := range []int{0, 1, 2, 3} {
		for _, forgetful := range []bool{false, true} {
			inSample(t, fmt.Sprint(again, forgetful), func(t *testing.T) {
				w := newWorld(t)
				w.forgetful = forgetful
				fails := 2
				picky := NewActivity("picky", func(context.Context, int) (int, error) {
					if fails--; fails >= 0 {
						return 0, Permanent(errors.New("picky"))
					}
					return 0, nil
				})
				o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
					if _, err := Event[int](ctx, "go").Await(); err != nil {
						return 0, err
					}
					if n < again {
						return 0, ContinueAsNew(n + 1)
					}
					if _, err := picky.Call(ctx, 1).Await(); err != nil {
						return 0, err
					}
					v, err := Event[string](ctx, "n").Await()
					return len(v), err
				})
				rt := w.signalling(t, nil, []AnyOrchestrator{o}, []AnyActivity{picky})
				mustRun(t, rt, startOf("a", 0))
				send := func(s Signal) {
					rt = w.signalling(t, nil, []AnyOrchestrator{o}, []AnyActivity{picky})
					if _, err := rt.Deliver(t.Context(), s); err != nil {
						t.Fatal(err)
					}
				}
				send(eventSignal("a", "e1", "n", `"`+strings.Repeat("x", 70_000)+`"`))
				for i := range again + 1 {
					send(eventSignal("a", "go"+string(rune('a'+i)), "go", "1"))
				}
				for i := range 2 {
					if _, err := rt.Rewind(t.Context(), "a", "r"+string(rune('a'+i))); err != nil {
						t.Errorf("again %d, rewind %d: %v", again, i, err)
						return
					}
					w.settle(t, rt)
				}
				if out := mustGet(t, rt, "a"); string(out.Output) != "70000" {
					t.Errorf("again %d: %s %.100s %v", again, out.Status, out.Output, out.Failure)
				}
			})
		}
	}
}
