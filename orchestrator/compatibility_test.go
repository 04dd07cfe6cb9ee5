package orchestrator_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

// history names the file that TestMakeCompatibility writes. To make one, copy this file into a checkout of the release
// and run there
//
//	ROUNDHOUSE_HISTORY=$PWD/v1.2.3.json.gz go test ./orchestrator -run '^TestMakeCompatibility$'
//
// and keep the file in testdata/compatibility for good. So this file only uses features of every release.
const history = "ROUNDHOUSE_HISTORY"

// waits is the age of runs when their program is replaced by another.
const waits = 90 * time.Minute

// oldRuns are orchestrations of all kinds that are in progress after waits, with their final outputs.
func oldRuns() (code []orchestrator.AnyOrchestrator, activities []orchestrator.AnyActivity, ends map[string]string) {
	inc := orchestrator.NewActivity("inc", func(_ context.Context, n int) (int, error) { return n + 1, nil })
	large := orchestrator.NewActivity("large", func(_ context.Context, n int) (string, error) { return strings.Repeat("x", n), nil })
	bad := orchestrator.NewActivity("bad", func(context.Context, int) (int, error) { return 0, errors.New("bad") })
	child := orchestrator.NewOrchestrator("child", func(ctx *orchestrator.Context, n int) (int, error) {
		ctx.Sleep(3 * time.Hour)
		return inc.Call(ctx, n).Await()
	})
	type fn = func(ctx *orchestrator.Context, n int) (int, error)
	runs := map[string]struct {
		do  fn
		end string
	}{
		"timers": {func(ctx *orchestrator.Context, n int) (int, error) {
			ctx.Sleep(time.Hour)
			n, err := inc.Call(ctx, n).Await()
			ctx.Sleep(2 * time.Hour)
			return n, err
		}, "Completed 1"},
		"event": {func(ctx *orchestrator.Context, _ int) (int, error) {
			return orchestrator.Event[int](ctx, "later").Await()
		}, "Completed 7"},
		"kept event": {func(ctx *orchestrator.Context, n int) (int, error) {
			if ctx.Sleep(time.Hour); n < 3 {
				return 0, orchestrator.ContinueAsNew(n + 1)
			}
			return orchestrator.Event[int](ctx, "early").Await()
		}, "Completed 5"},
		"parent": {func(ctx *orchestrator.Context, _ int) (int, error) {
			all, err := orchestrator.All(child.Call(ctx, 1), child.Call(ctx, 2))
			if err != nil {
				return 0, err
			}
			return all[0] + all[1], nil
		}, "Completed 5"},
		"large payloads": {func(ctx *orchestrator.Context, _ int) (int, error) {
			before, err := large.Call(ctx, 200_000).Await()
			if err != nil {
				return 0, err
			}
			ctx.Sleep(3 * time.Hour)
			after, err := large.Call(ctx, 100_000).Await()
			return len(before) + len(after), err
		}, "Completed 300000"},
		"retry": {func(ctx *orchestrator.Context, _ int) (int, error) {
			_, err := bad.Call(ctx, 1, orchestrator.WithRetry(orchestrator.Retry{MaxAttempts: 4, FirstInterval: time.Hour})).Await()
			if err == nil {
				return 0, errors.New("no failure")
			}
			return 5, nil
		}, "Completed 5"},
		"fan-out": {func(ctx *orchestrator.Context, _ int) (int, error) {
			var all []*orchestrator.Future[int]
			for i := range 200 {
				all = append(all, inc.Call(ctx, i))
			}
			ctx.Sleep(3 * time.Hour)
			results, err := orchestrator.All(all...)
			return len(results), err
		}, "Completed 200"},
		"task": {func(ctx *orchestrator.Context, _ int) (int, error) {
			answer := orchestrator.AskPerson[int](ctx, orchestrator.HumanTask{Name: "approve"})
			if orchestrator.Any(ctx, answer, orchestrator.Timer(ctx, 4*time.Hour)) == 1 {
				orchestrator.Cancel(ctx, answer)
				return 77, nil
			}
			v, err := answer.Await()
			return v.Output, err
		}, "Completed 77"},
		"recorded values": {func(ctx *orchestrator.Context, _ int) (int, error) {
			before := ctx.NewUUID()
			patched := ctx.Patched("p")
			number := ctx.Rand().IntN(1000)
			ctx.Sleep(3 * time.Hour)
			if !patched || number < 0 || before.String() == "" {
				return 0, errors.New("a recorded value is another one")
			}
			return 1, nil
		}, "Completed 1"},
		"failure": {func(ctx *orchestrator.Context, _ int) (int, error) {
			ctx.Sleep(3 * time.Hour)
			return bad.Call(ctx, 1).Await()
		}, "Failed"},
		"suspended": {func(ctx *orchestrator.Context, n int) (int, error) {
			ctx.Sleep(time.Hour)
			return inc.Call(ctx, n).Await()
		}, "Completed 1"},
	}
	code, activities, ends = []orchestrator.AnyOrchestrator{child}, []orchestrator.AnyActivity{inc, large, bad}, map[string]string{}
	for name, run := range runs {
		code = append(code, orchestrator.NewOrchestrator(name, run.do))
		ends[name] = run.end
	}
	return code, activities, ends
}

// oldPlatform is storage with a host that delivers messages and sweeps.
type oldPlatform struct {
	rows   *rowNotes
	blobs  *blobs.Memory
	queues *queues.Memory
	rt     *orchestrator.Runtime
}

func newOldPlatform(t *testing.T) *oldPlatform {
	t.Helper()
	p := &oldPlatform{rows: &rowNotes{Store: tables.NewMemory(), seen: map[string]bool{}}, blobs: blobs.NewMemory(), queues: queues.NewMemory()}
	code, activities, _ := oldRuns()
	rt, err := orchestrator.New(orchestrator.Config{Tables: p.rows, Blobs: p.blobs, Queues: p.queues, Orchestrators: code, Activities: activities,
		Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err == nil {
		err = rt.Prepare(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	p.rt = rt
	return p
}

// attend delivers the due messages and sweeps, for some time.
func (p *oldPlatform) attend(t *testing.T, d time.Duration) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Minute) {
		if _, err := p.rt.Sweep(t.Context(), 100); err != nil {
			t.Fatal(err)
		}
		for _, queue := range []string{"orchestration-signals", "orchestration-schedules", "orchestration-activities"} {
			all, err := p.queues.Receive(t.Context(), queue, 32, time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range all {
				body := queues.Decode(m.Text)
				if queue == "orchestration-activities" {
					err = p.rt.RunActivities(t.Context(), body)
				} else if s, bad := orchestrator.DecodeSignal(body); bad != nil {
					err = bad
				} else if _, err = p.rt.Deliver(t.Context(), s); errors.Is(err, orchestrator.ErrNotFound) {
					err = nil
				}
				if err == nil {
					_ = p.queues.Delete(t.Context(), queue, m.ID, m.PopReceipt)
				}
			}
		}
	}
}

// storedState is a history file: the rows and blobs at a time.
type storedState struct {
	At    time.Time
	Rows  []storedRow
	Blobs map[string][]byte
}

type storedRow struct {
	Table, Partition, Row string
	// Properties are texts by names that end with the type, as "Round:int64".
	Properties map[string]string
}

// TestMakeCompatibility writes a history file, on request.
func TestMakeCompatibility(t *testing.T) {
	file := os.Getenv(history)
	if file == "" {
		t.Skip("it makes a file for TestCompatibility in a checkout of a release: set " + history)
	}
	synctest.Test(t, func(t *testing.T) {
		p := newOldPlatform(t)
		_, _, ends := oldRuns()
		for name := range ends {
			s := orchestrator.Start{ID: name, Orchestrator: name, Input: []byte("0"), CorrelationID: "c-" + name}
			if _, err := p.rt.Start(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		}
		p.attend(t, time.Minute)
		if err := errors.Join(p.rt.Raise(t.Context(), "kept event", "early", 5, "e1"), p.rt.Suspend(t.Context(), "suspended", "a while")); err != nil {
			t.Fatal(err)
		}
		p.attend(t, waits)
		var text bytes.Buffer
		zip := gzip.NewWriter(&text)
		err := errors.Join(json.NewEncoder(zip).Encode(p.state(t)), zip.Close(), os.WriteFile(file, text.Bytes(), 0o600))
		if err != nil {
			t.Fatal(err)
		}
	})
}

// Runs that an earlier release left in progress continue with this one, even if every message is lost.
func TestCompatibility(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/compatibility/*.json.gz")
	if err != nil || len(files) == 0 {
		t.Fatalf("no history of a release: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json.gz"), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newOldPlatform(t)
				p.restore(t, file)
				_, _, ends := oldRuns()
				if err := errors.Join(p.rt.Raise(t.Context(), "event", "later", 7, "e2"), p.rt.Resume(t.Context(), "suspended", "on")); err != nil {
					t.Fatal(err)
				}
				p.attend(t, 30*time.Hour)
				for name, want := range ends {
					out, err := p.rt.Get(t.Context(), name)
					got := string(out.Status)
					if out.Output != nil {
						got += " " + string(out.Output)
					}
					if err != nil || got != want {
						t.Errorf("%s: %s %v %v, want %s", name, got, out.Failure, err, want)
					}
				}
			})
		})
	}
}

// state reads all stored rows and blobs.
func (p *oldPlatform) state(t *testing.T) storedState {
	t.Helper()
	s := storedState{At: time.Now(), Blobs: map[string][]byte{}}
	for key := range p.rows.seen {
		table, partition, _ := strings.Cut(key, "\n")
		for e, err := range tables.All(t.Context(), p.rows, table, tables.Query{Partition: partition}) {
			if err != nil {
				t.Fatal(err)
			}
			row := storedRow{table, e.Partition, e.Row, map[string]string{}}
			for name, v := range e.Properties {
				text, err := json.Marshal(v)
				if err != nil {
					t.Fatal(err)
				}
				row.Properties[fmt.Sprintf("%s:%T", name, v)] = string(text)
			}
			s.Rows = append(s.Rows, row)
		}
	}
	slices.SortFunc(s.Rows, func(a, b storedRow) int {
		return strings.Compare(a.Table+"\n"+a.Partition+"\n"+a.Row, b.Table+"\n"+b.Partition+"\n"+b.Row)
	})
	for next, first := "", true; first || next != ""; first = false {
		names, more, err := p.blobs.List(t.Context(), "orchestrations", "", next)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if s.Blobs[name], err = p.blobs.Get(t.Context(), "orchestrations", name); err != nil {
				t.Fatal(err)
			}
		}
		next = more
	}
	return s
}

// restore puts the rows and blobs of a history file into storage, and continues a little after its time.
func (p *oldPlatform) restore(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var s storedState
	zip, err := gzip.NewReader(bytes.NewReader(text))
	if err == nil {
		err = json.NewDecoder(zip).Decode(&s)
	}
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Until(s.At.Add(time.Minute)))
	for _, row := range s.Rows {
		e := tables.Entity{Key: tables.Key{Partition: row.Partition, Row: row.Row}, Properties: map[string]any{}}
		for name, text := range row.Properties {
			name, kind, _ := strings.Cut(name, ":")
			if e.Properties[name], err = valueOf(kind, text); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.rows.Apply(t.Context(), row.Table, tables.Insert(e)); err != nil {
			t.Fatal(err)
		}
	}
	for name, data := range s.Blobs {
		if err := p.blobs.Put(t.Context(), "orchestrations", name, data); err != nil {
			t.Fatal(err)
		}
	}
}

// valueOf returns a property of this type.
func valueOf(kind, text string) (any, error) {
	switch kind {
	case "string":
		return decoded[string](text)
	case "bool":
		return decoded[bool](text)
	case "int32":
		return decoded[int32](text)
	case "int64":
		return decoded[int64](text)
	case "float64":
		return decoded[float64](text)
	case "time.Time":
		return decoded[time.Time](text)
	case "[]uint8":
		return decoded[[]byte](text)
	}
	return nil, fmt.Errorf("a property of the type %s", kind)
}

func decoded[T any](text string) (v T, err error) {
	err = json.Unmarshal([]byte(text), &v)
	return v, err
}

// rowNotes records the partitions that are written.
type rowNotes struct {
	tables.Store

	mu   sync.Mutex
	seen map[string]bool
}

func (n *rowNotes) Apply(ctx context.Context, table string, ops ...tables.Op) error {
	n.mu.Lock()
	for _, o := range ops {
		n.seen[table+"\n"+o.Entity.Partition] = true
	}
	n.mu.Unlock()
	return n.Store.Apply(ctx, table, ops...)
}
