package drain_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/handler/drain"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/tables"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errStop = errors.New("drained")

func gate(store tables.Store, node string) *drain.Gate {
	return drain.NewGate(drain.Store{Tables: store}, node, errStop, slog.New(slog.DiscardHandler))
}

func running(t *testing.T, s drain.Store, f drain.Flag) map[string]int {
	t.Helper()
	nodes, err := s.Look(t.Context(), f)
	testenv.OK(t, err)
	all := map[string]int{}
	for _, n := range nodes {
		all[n.Name] = n.Running
	}
	return all
}

// Running work of a drained app is canceled within the notice and reported until it ends, and no work begins.
func TestDrain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := drain.Store{Tables: tables.NewMemory()}
		busy, idle := gate(store.Tables, "busy/1"), gate(store.Tables, "idle/1")
		work, leave, err := busy.Enter(t.Context())
		if err != nil || work.Err() != nil {
			t.Fatalf("%v, %v", err, work.Err())
		}
		_, quick, _ := busy.Enter(t.Context())
		f, err := store.Begin(t.Context(), "ann", time.Hour)
		testenv.OK(t, err)
		_, late, err := busy.Enter(t.Context())
		if err != nil {
			t.Error("the flag is read for every invocation")
		}
		time.Sleep(drain.Notice)
		synctest.Wait()
		if !errors.Is(context.Cause(work), errStop) {
			t.Errorf("after the notice: %v", context.Cause(work))
		}
		testenv.Equal(t, "", map[string]int{"busy/1": 3}, running(t, store, f))
		for _, g := range []*drain.Gate{busy, idle} {
			if _, _, err := g.Enter(t.Context()); err == nil {
				t.Error("something was let in")
			}
		}
		quick()
		late()
		time.Sleep(drain.Interval)
		synctest.Wait()
		testenv.Equal(t, "", map[string]int{"busy/1": 1}, running(t, store, f))
		leave()
		synctest.Wait()
		testenv.Equal(t, "", map[string]int{}, running(t, store, f))

		// It ends on request.
		testenv.OK(t, store.End(t.Context()))
		time.Sleep(drain.Interval)
		work, leave, err = busy.Enter(t.Context())
		if err != nil || work.Err() != nil {
			t.Errorf("afterwards: %v, %v", err, work.Err())
		}
		leave()

		// Or by itself.
		if f, err = store.Begin(t.Context(), "ann", time.Minute); err != nil {
			t.Fatal(err)
		}
		time.Sleep(drain.Interval)
		if _, _, err := busy.Enter(t.Context()); err == nil {
			t.Error("something was let in")
		}
		testenv.Equal(t, "of the drain before", map[string]int{}, running(t, store, f))
		time.Sleep(time.Minute)
		_, leave, err = busy.Enter(t.Context())
		if err != nil {
			t.Error("a drain that was forgotten goes on")
		}
		leave()
		synctest.Wait()
	})
}

// A gate that is closed for good ends the work inside, with the closer's cause, and waits for it. It admits nothing
// any longer, even while storage hangs.
func TestClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var standsStill atomic.Bool
		store := faults.Tables(tables.NewMemory(), func(ctx context.Context, _ faults.Call, do func(context.Context) error) error {
			if standsStill.Load() {
				<-ctx.Done()
				return ctx.Err()
			}
			return do(ctx)
		})
		g, stopping := gate(store, "a/1"), errors.New("it stops")
		works, leave, err := g.Enter(t.Context())
		testenv.OK(t, err)
		_, stays, _ := g.Enter(t.Context())
		standsStill.Store(true)
		began := time.Now()
		closed := make(chan int)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		go func() { closed <- g.Close(ctx, stopping) }()
		<-works.Done()
		if cause := context.Cause(works); !errors.Is(cause, stopping) {
			t.Errorf("the cause is %v", cause)
		}
		if _, _, err := g.Enter(t.Context()); !errors.Is(err, stopping) || time.Since(began) != 0 {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		leave()
		synctest.Wait()
		if n := <-closed; n != 1 || time.Since(began) != time.Minute {
			t.Errorf("%d were inside after %v", n, time.Since(began))
		}
		go func() { closed <- g.Close(t.Context(), errors.New("again")) }()
		synctest.Wait()
		stays()
		testenv.Equal(t, "who is inside", 0, <-closed)
		if _, _, err := g.Enter(t.Context()); !errors.Is(err, stopping) {
			t.Errorf("afterwards: %v", err)
		}
		idle := gate(store, "idle/1")
		testenv.Equal(t, "who is inside an idle one", 0, idle.Close(t.Context(), stopping))
		began = time.Now()
		if _, _, err := idle.Enter(t.Context()); !errors.Is(err, stopping) || time.Since(began) != 0 {
			t.Errorf("the idle one, after %v: %v", time.Since(began), err)
		}
		time.Sleep(drain.Notice) // the watch stops waiting for storage
		synctest.Wait()
	})
}

// An app that was never drained, and one whose storage does not answer, works. The last read flag counts.
func TestGateWithoutStorage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		memory := tables.NewMemory()
		var down atomic.Bool
		broken := faults.Tables(memory, func(ctx context.Context, _ faults.Call, do func(context.Context) error) error {
			if down.Load() {
				return errors.New("storage is down")
			}
			return do(ctx)
		})
		g := gate(broken, "a/1")
		down.Store(true)
		_, leave, err := g.Enter(t.Context())
		if err != nil {
			t.Error("closed for want of storage")
		}
		leave()
		down.Store(false)
		testenv.Must((drain.Store{Tables: memory}).Begin(t.Context(), "ann", time.Hour))(t)
		time.Sleep(drain.Interval)
		if _, _, err := g.Enter(t.Context()); err == nil {
			t.Error("open")
		}
		down.Store(true)
		time.Sleep(drain.Interval)
		if _, _, err := g.Enter(t.Context()); err == nil {
			t.Error("what was read last is forgotten")
		}
	})
}

// An idle process makes no storage request, and a working one makes one in an interval, for any number of
// invocations.
func TestGateAsksSeldom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		g := gate(faults.Tables(tables.NewMemory(), func(ctx context.Context, _ faults.Call, do func(context.Context) error) error {
			asked.Add(1)
			return do(ctx)
		}), "a/1")
		time.Sleep(time.Hour)
		testenv.Equal(t, "requests without work", 0, asked.Load())
		const seconds = 60
		for range seconds * 10 {
			_, leave, _ := g.Enter(t.Context())
			time.Sleep(time.Second / 10)
			leave()
		}
		synctest.Wait()
		if n := asked.Load(); n > seconds/int64(drain.Interval/time.Second)+1 {
			t.Errorf("%d requests in %d seconds", n, seconds)
		}
	})
}

func TestLength(t *testing.T) {
	t.Parallel()
	store := drain.Store{Tables: tables.NewMemory()}
	for _, length := range []time.Duration{0, time.Millisecond, -time.Hour, drain.MaxLength + 1} {
		if _, err := store.Begin(t.Context(), "ann", length); !errors.Is(err, drain.ErrLength) {
			t.Errorf("%v: %v", length, err)
		}
	}
	if err := store.End(t.Context()); err != nil {
		t.Errorf("without a drain: %v", err)
	}
	if f, err := store.Flag(t.Context()); err != nil || f.Set(time.Now()) {
		t.Errorf("%+v, %v", f, err)
	}
}

// All of many processes are seen.
func TestLookSeesAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := drain.Store{Tables: tables.NewMemory()}
		want := map[string]int{}
		var leaves []func()
		for n := range 1200 { // more than a page
			name := fmt.Sprintf("host/%d", n)
			_, leave, _ := gate(store.Tables, name).Enter(t.Context())
			leaves, want[name] = append(leaves, leave), 1
		}
		f, err := store.Begin(t.Context(), "ann", time.Hour)
		testenv.OK(t, err)
		time.Sleep(drain.Notice)
		synctest.Wait()
		testenv.Equal(t, "", want, running(t, store, f))
		for _, leave := range leaves {
			leave()
		}
		synctest.Wait()
		testenv.Equal(t, "", map[string]int{}, running(t, store, f))
		// The next drain deletes the reports.
		testenv.Must(store.Begin(t.Context(), "ann", time.Hour))(t)
		if page, err := store.Tables.Query(t.Context(), "hostLocks", tables.Query{Partition: "drain"}); err != nil || len(page.Entities) != 1 {
			t.Errorf("%d rows, %v", len(page.Entities), err)
		}
	})
}
