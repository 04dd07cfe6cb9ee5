package tls_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"

	"github.com/vibedata/roundhouse/engine/tls"
	"github.com/vibedata/roundhouse/internal/pebble"
	"github.com/vibedata/roundhouse/internal/sample"
	"github.com/vibedata/roundhouse/tables"
)

var errCrash = errors.New("the process is dead")

// trouble counts the calls of a process to the world, and kills it at one of them.
type trouble struct {
	die context.CancelFunc

	mu    sync.Mutex
	at    int  // the call at which it dies, from 1; 0 for none
	after bool // whether the call takes effect
	seen  int
	dead  bool
	what  string // the call at which it died
}

// around makes a call, or dies.
func (tr *trouble) around(what string, do func() error) error {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if tr.dead {
		return errCrash
	}
	tr.seen++
	if tr.seen != tr.at {
		return do()
	}
	tr.dead, tr.what = true, what
	if tr.after {
		_ = do() // the process is dead
	}
	tr.die()
	return errCrash
}

// dyingTransport passes requests through a trouble.
type dyingTransport struct {
	*trouble
	next http.RoundTripper
}

func (d dyingTransport) RoundTrip(r *http.Request) (resp *http.Response, err error) {
	crash := d.around(r.Method+" "+r.URL.Path, func() error {
		resp, err = d.next.RoundTrip(r)
		return err
	})
	if errors.Is(crash, errCrash) {
		if resp != nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		return nil, crash
	}
	return resp, err
}

// dyingTables passes changes of tables through a trouble.
type dyingTables struct {
	tables.Store
	*trouble
}

func (d dyingTables) Apply(ctx context.Context, table string, ops ...tables.Op) error {
	return d.around(table, func() error { return d.Store.Apply(ctx, table, ops...) })
}

// After a crash at any point of a renewal, the next process continues: in the end one certificate of one key exists,
// and a second order only if the address of the first was lost.
func TestCrashes(t *testing.T) {
	t.Parallel()
	calls := renewal(t, 0, false)
	if calls < 20 {
		t.Fatalf("a renewal makes %d calls: the decorators miss some", calls)
	}
	for at := 1; at <= calls; at++ {
		for _, after := range []bool{false, true} {
			if !sample.Keep(t, at, after) {
				continue
			}
			t.Run(fmt.Sprintf("call %d, taken effect %v", at, after), func(t *testing.T) {
				t.Parallel()
				renewal(t, at, after)
			})
		}
	}
}

// renewal renews in a process that dies at a call, then in another one, and returns the number of calls of the first.
func renewal(t *testing.T, at int, after bool) int {
	t.Helper()
	w := newWorld(t, pebble.Options{}, 0)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	tr := &trouble{die: cancel, at: at, after: after}
	steps := w.stepsOver(t, func(next http.RoundTripper) http.RoundTripper { return dyingTransport{tr, next} }, dyingTables{w.tables, tr})
	out, err := steps.Renew(ctx, input("j1"))
	if tr.dead && err == nil {
		// The call was not essential, such as removing an answer; the activity ends with it.
		t.Logf("%s did not stop it", tr.what)
	}
	if err != nil {
		out = w.renew(t, input("j1"))
	}
	versions := w.versions(t)
	if len(versions) != 1 || versions[0].Version != out.Certificate.Version || !out.Renewed || w.vault.Pending(versions[0].Name) || len(w.vault.Keys()) != 1 {
		t.Errorf("died at %s (%v): versions %+v, %d keys, output %+v", tr.what, err, versions, len(w.vault.Keys()), out)
	}
	again := w.renew(t, input("j1"))
	if again.Certificate.Version != out.Certificate.Version {
		t.Errorf("again: %+v", again)
	}
	w.checkSecret(t, out, fmt.Sprint(err))
	return tr.seen
}

// Between order and certificate, the next process continues with the same order.
func TestNoSecondOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pebble.Options{}, 0)
	for range 40 {
		w.ca.Refuse(pebble.Refusal{Path: pebble.Finalize, Status: 503, Type: "serverInternal"})
	}
	if _, err := w.steps(t).Renew(t.Context(), input("j1")); err == nil {
		t.Fatal("no error")
	}
	w.ca.Forgive()
	row, err := w.tables.Get(t.Context(), tls.OrdersTable, tables.Key{Partition: tls.CertificateName([]string{domain}), Row: "order"})
	if err != nil {
		t.Fatal(err)
	}
	ordered := w.ca.Count(pebble.NewOrder)
	if out := w.renew(t, input("j1")); !out.Renewed {
		t.Errorf("%+v", out)
	}
	after, err := w.tables.Get(t.Context(), tls.OrdersTable, row.Key)
	if err != nil || after.ETag != row.ETag || w.ca.Count(pebble.NewOrder) != ordered {
		t.Errorf("another order was made: %v, %v", after.Properties, err)
	}
}
