package handler

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

// A start over complete storage makes four requests, two of which wait for the others. The start of a changed program
// creates its storage.
func TestAStartOverWhatIsThere(t *testing.T) {
	t.Parallel()
	a := newAccount(nothingIsAway)
	start := func(pairs ...string) (asked, created int) {
		t.Helper()
		b := a.begin(t, pairs...)
		a.asked = map[faults.Call]int{}
		testenv.OK(t, b.Start(t.Context()))
		for call, n := range a.asked {
			asked += n
			if strings.HasPrefix(call.Operation, "Create") {
				created += n
			}
		}
		return asked, created
	}
	first, made := start()
	if made < 20 {
		t.Errorf("the first start creates %d things in %d requests", made, first)
	}
	for range 2 {
		if asked, created := start(); asked != 4 || created != 0 {
			t.Errorf("the next start makes %d requests and creates %d things, want 4 and none", asked, created)
		}
	}
	if asked, created := start("ROUNDHOUSE_INSTANCE_ID", "another"); created != made {
		t.Errorf("a start for another instance makes %d requests and creates %d things, want %d", asked, created, made)
	}
	if asked, created := start("ROUNDHOUSE_INSTANCE_ID", "another"); asked != 4 || created != 0 {
		t.Errorf("its next start makes %d requests and creates %d things, want 4 and none", asked, created)
	}
}

// deleted is storage from which objects are deleted by hand.
type deleted struct {
	mu   sync.Mutex
	gone map[string]bool // service and target
	made int             // number of created objects
}

func (d *deleted) intercept(ctx context.Context, c faults.Call, next func(context.Context) error) error {
	name := c.Service + " " + c.Target
	d.mu.Lock()
	if strings.HasPrefix(c.Operation, "Create") {
		d.made++
		delete(d.gone, name)
	}
	gone := d.gone[name]
	d.mu.Unlock()
	if gone {
		return fmt.Errorf("%s %s: %w", c.Operation, c.Target, tables.ErrNotFound)
	}
	return next(ctx)
}

func (d *deleted) delete(names ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.made, d.gone = 0, map[string]bool{}
	for _, name := range names {
		d.gone[name] = true
	}
}

// An object that is deleted by hand is created again by the first request that needs it, which succeeds: everything
// is created once, however much is missing.
func TestWhatIsDeletedIsMadeAgain(t *testing.T) {
	t.Parallel()
	for name, gone := range map[string][]string{
		"a queue":              {"queues work-queue"},
		"the table of history": {"tables engineHistory"},
		"a container":          {"blobs orchestrations"},
		"several":              {"queues work-queue", "tables engineHistory", "tables engineDlq", "tables orchestrations", "tables orchestrationsList"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &deleted{gone: map[string]bool{}}
			memory := queues.NewMemory()
			h, err := New(workApp(), Config{Lookup: emulator.With("AZURE_FUNCTIONS_ENVIRONMENT", "Development", "FUNCTIONS_CORETOOLS_ENVIRONMENT", "true").Lookup,
				Tables: faults.Tables(tables.NewMemory(), d.intercept), Queues: faults.Queues(memory, d.intercept), Blobs: faults.Blobs(blobs.NewMemory(), d.intercept), Log: slog.New(slog.DiscardHandler)})
			testenv.OK(t, err)
			t.Cleanup(h.Close)
			testenv.OK(t, h.Start(t.Context()))
			all := d.made
			d.delete(gone...)
			do := func(method, path, body string, want int) {
				t.Helper()
				req := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
				req.Host = "localhost"
				req.Header.Set("Content-Type", "application/json")
				rec := httptest.NewRecorder()
				if h.ServeHTTP(rec, req); rec.Code != want {
					t.Errorf("%s %s: %d %s, want %d", method, path, rec.Code, rec.Body, want)
				}
			}
			do(http.MethodPost, "/api/work", `{"correlationId":"c1"}`, http.StatusAccepted)
			do(http.MethodGet, "/api/history", "", http.StatusOK)
			if _, _, store := h.Stores(); store.Put(t.Context(), "orchestrations", "a", []byte("b")) != nil {
				t.Error("a blob cannot be written")
			}
			testenv.Equal(t, "things that were created, each once", all, d.made)
		})
	}
}

// A queue that the program does not need is not created when a message for it cannot be sent.
func TestWhatIsNotNeededIsNotMade(t *testing.T) {
	t.Parallel()
	a := newAccount(nothingIsAway)
	b := a.begin(t)
	testenv.OK(t, b.Start(t.Context()))
	a.asked = map[faults.Call]int{}
	_, q, _ := b.Stores()
	if _, err := q.Send(t.Context(), "elsewhere", []byte("x"), 0); err == nil || len(a.asked) != 1 {
		t.Errorf("%v after %v", err, a.asked)
	}
}
