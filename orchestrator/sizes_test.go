package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/internal/azurite/azuritetest"
	"github.com/vibedata/roundhouse/internal/sample"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

// storages returns the storages for orchestrations, ready for use.
func storages(t *testing.T) map[string]func() Config {
	t.Helper()
	named := func(c Config) Config {
		c.Table, c.Container, c.IndexTable, c.TaskTable = azuritetest.Name("t"), azuritetest.Name("c"), azuritetest.Name("i"), azuritetest.Name("k")
		c.Queues, c.Log = queues.NewMemory(), slog.New(slog.NewTextHandler(io.Discard, nil))
		return c
	}
	memory := func() Config { return named(Config{Tables: tables.NewMemory(), Blobs: blobs.NewMemory()}) }
	if testing.Short() {
		return map[string]func() Config{"memory": memory}
	}
	account := storage.Account(t)
	azureTables, errTables := azure.NewTables(account)
	azureBlobs, errBlobs := azure.NewBlobs(account)
	noError(t, errors.Join(errTables, errBlobs))
	return map[string]func() Config{
		"memory":  memory,
		"azurite": func() Config { return named(Config{Tables: azureTables, Blobs: azureBlobs}) },
	}
}

// sized are orchestrators and an activity for values of a size.
func sized(c Config) Config {
	text := func(n int) string { return strings.Repeat("x", max(0, n-2)) } // with its quotes
	give := NewActivity("give", func(_ context.Context, n int) (string, error) { return text(n), nil })
	take := NewActivity("take", func(_ context.Context, s string) (int, error) { return len(s) + 2, nil })
	one := func(name string, fn func(ctx *Context, n int) (any, error)) AnyOrchestrator {
		return NewOrchestrator(name, fn)
	}
	c.Activities = []AnyActivity{give, take}
	c.Orchestrators = []AnyOrchestrator{
		NewOrchestrator("input", func(_ *Context, s string) (int, error) { return len(s) + 2, nil }),
		one("result", func(ctx *Context, n int) (any, error) { s, err := give.Call(ctx, n).Await(); return len(s) + 2, err }),
		one("call", func(ctx *Context, n int) (any, error) { return take.Call(ctx, text(n)).Await() }),
		one("output", func(_ *Context, n int) (any, error) { return text(n), nil }),
		one("side effect", func(ctx *Context, n int) (any, error) {
			s, err := SideEffect(ctx, "s", func() string { return text(n) })
			return len(s) + 2, err
		}),
		one("status", func(ctx *Context, n int) (any, error) { return n, ctx.SetStatus(text(n)) }),
	}
	return c
}

func prepared(t *testing.T, c Config) *Runtime {
	t.Helper()
	rt, err := New(c)
	if err == nil {
		err = rt.Prepare(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return rt
}

// At each limit, one less and the limit itself are stored and read back, by a process without state, and one more is
// rejected with the limit and does no harm.
func TestSizesOfOrchestrations(t *testing.T) {
	bulky(t)
	t.Parallel()
	for kind, open := range storages(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			c := sized(open())
			rt := prepared(t, c)
			for name, most := range map[string]int{"input": MaxPayload, "result": MaxPayload, "call": MaxPayload, "output": MaxPayload, "side effect": MaxPayload, "status": maxCustomStatus} {
				for _, n := range []int{spillFrom - 1, spillFrom, spillFrom + 1, most - 1, most, most + 1} {
					if n > most+1 || n > 1<<20 && !sample.Keep(t, name, n) {
						continue
					}
					id := fmt.Sprint(name, n)
					s := Start{ID: id, Orchestrator: name, Input: fmt.Append(nil, n)}
					if name == "input" {
						s.Input = fmt.Appendf(nil, "%q", strings.Repeat("x", n-2))
					}
					out, err := rt.Run(t.Context(), s)
					if n > most {
						refused := err
						if err == nil && out.Status == Failed && out.Failure.Permanent {
							refused = out.Failure
						}
						if refused == nil || !strings.Contains(refused.Error(), fmt.Sprint(most)) {
							t.Errorf("%s: %s %v", id, out.Status, err)
						}
						continue
					}
					fresh, errNew := New(c)
					if err := errors.Join(err, errNew); err != nil || out.Status != Completed {
						t.Errorf("%s: %s %v %v", id, out.Status, out.Failure, err)
						continue
					}
					again, err := fresh.Get(t.Context(), id)
					if want := n; err != nil || name == "output" && len(again.Output) != want || name != "output" && string(again.Output) != fmt.Sprint(want) {
						t.Errorf("%s comes back with %d bytes: %v", id, len(again.Output), err)
					}
					if err := fresh.Purge(t.Context(), id); err != nil {
						t.Errorf("%s: %v", id, err)
					}
				}
			}
		})
	}
}

// A round that just fits its row is in the row, one that just does not is in a blob, and both are read back.
func TestSizesOfRounds(t *testing.T) {
	bulky(t)
	t.Parallel()
	for kind, open := range storages(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			rt := prepared(t, open())
			noise := incompressible(2 << 20)
			of := func(n int) round { // with this size of reasons, which no blob holds by themselves
				return round{Learned: []event{{Kind: executionStarted, Signal: &signalDetails{Reason: noise[:n]}}}}
			}
			low, high := 0, len(noise)
			for low+1 < high {
				columns, blob, err := rt.journal.codec.encode(new(roundBuffers), of((low+high)/2))
				if err != nil {
					t.Fatal(err)
				}
				if blob == nil && columns != nil {
					low = (low + high) / 2
				} else {
					high = (low + high) / 2
				}
			}
			for _, n := range []int{low - 1, low, high, high + 1} {
				id := fmt.Sprint(n)
				inBlob, err := rt.journal.commit(t.Context(), id, 1, 1, of(n), &roundBuffers{status: map[string]any{"StateVersion": int64(1)}}, "")
				if err != nil || inBlob != (n >= high) {
					t.Errorf("%d bytes: in a blob %v, %v", n, inBlob, err)
				}
				all, err := rt.journal.load(t.Context(), id)
				if err != nil || len(all) != 1 || all[0].rounds[0].Learned[0].signal().Reason != noise[:n] {
					t.Errorf("%d bytes: %d executions, %v", n, len(all), err)
				}
			}
		})
	}
}

// The fields and names of a start and a signal have limits, too.
func TestSizesOfStartsAndSignals(t *testing.T) {
	bulky(t)
	t.Parallel()
	for kind, open := range storages(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			rt := prepared(t, sized(open()))
			long := func(n int) string { return strings.Repeat("x", n) }
			for name, tt := range map[string]struct {
				most int
				do   func(n int) error
			}{
				"id": {400, func(n int) error {
					_, err := rt.Start(t.Context(), Start{ID: long(n), Orchestrator: "input", Input: json.RawMessage(`""`)})
					return err
				}},
				"carry": {maxCarry, func(n int) error {
					_, err := rt.Start(t.Context(), Start{ID: fmt.Sprint("carry", n), Orchestrator: "input", Input: json.RawMessage(`""`), Carry: []byte(long(n))})
					return err
				}},
				"reference": {maxReference, func(n int) error {
					_, err := rt.Start(t.Context(), Start{ID: fmt.Sprint("reference", n), Orchestrator: "input", Input: json.RawMessage(`""`), Reference: &Reference{Key: long(n - len(`{"key":""}`))}})
					return err
				}},
				"event name": {maxSignalName, func(n int) error { return rt.Raise(t.Context(), "a", long(n), 1, "") }},
				"signal id":  {maxSignalName, func(n int) error { return rt.Raise(t.Context(), "a", "e", 1, long(n)) }},
				"event":      {MaxPayload, func(n int) error { return rt.Raise(t.Context(), "a", "e", long(n-2), "") }},
			} {
				for _, n := range []int{tt.most - 1, tt.most, tt.most + 1} {
					if n > 1<<20 && !sample.Keep(t, name, n) {
						continue
					}
					if err := tt.do(n); (err == nil) != (n <= tt.most) || err != nil && !strings.Contains(err.Error(), fmt.Sprint(tt.most)) {
						t.Errorf("%s of %d: %v", name, n, err)
					}
				}
			}
			// A message of the largest size carries its event itself, one of a byte more names a blob.
			for _, n := range []int{queues.MaxBody - 1, queues.MaxBody, queues.MaxBody + 1} {
				s := Signal{SignalID: fmt.Sprint("s", n), InstanceID: "a", RuntimeProvider: provider, Type: ExternalSignal, Payload: Payload{Event: "e", Data: json.RawMessage(`""`)}}
				body, err := marshal(s)
				if err != nil {
					t.Fatal(err)
				}
				s.Payload.Data = fmt.Appendf(nil, "%q", long(n-len(body)))
				body, err = rt.pack(t.Context(), s)
				got, errDecode := DecodeSignal(body)
				if err := errors.Join(err, errDecode); err != nil || (got.Payload.Blob == "") != (n <= queues.MaxBody) || len(body) > queues.MaxBody {
					t.Errorf("%d bytes: blob %q, %v", n, got.Payload.Blob, err)
				}
				if got, _, err = rt.unpack(t.Context(), got); err != nil || string(got.Payload.Data) != string(s.Payload.Data) {
					t.Errorf("%d bytes come back as %d: %v", n, len(got.Payload.Data), err)
				}
			}
		})
	}
}
