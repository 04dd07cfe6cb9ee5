package console_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/access/accesstest"
	"github.com/vibedata/roundhouse/handler/console"
	"github.com/vibedata/roundhouse/internal/faults"
)

// most is how many transactions of storage the home page may take, and mostAgain when it was looked at a moment ago.
const most, mostAgain = 100, 25

// The home page of an app with many results and dead letters takes as many transactions as that of one with a few hundred, and few
// when it is loaded again.
func TestHomeIsCheap(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	count := func(ctx context.Context, _ faults.Call, next func(context.Context) error) error {
		calls.Add(1)
		return next(ctx)
	}
	b := newBench(t, inAzure())
	look := func() (first, again int64) {
		b.Restart(inAzure(), func(c *handler.Config) {
			c.Tables, c.Queues, c.Blobs = faults.Tables(c.Tables, count), faults.Queues(c.Queues, count), faults.Blobs(c.Blobs, count)
		})
		for _, n := range []*int64{&first, &again} {
			calls.Store(0)
			status, text := b.Do(http.MethodGet, console.Root, "", ann("Administrator").Sign)
			if status != http.StatusOK || strings.Contains(text, "could not be asked for") || strings.Contains(text, "You need the permission") {
				t.Fatalf("%d: %s", status, text)
			}
			*n = calls.Load()
		}
		return first, again
	}
	history := engine.NewHistory(b.Tables, "")
	fill := func(from, to int) {
		for n := from; n < to; n++ {
			b.bury(t, fmt.Sprint("work-", n), "", fmt.Sprint("failure ", n%7))
			if err := history.Record(t.Context(), engine.Entry{Engine: "store", Operation: "keep", CorrelationID: fmt.Sprint("run-", n), Status: engine.StatusSucceeded, RunStatus: engine.StatusSucceeded, CreatedAtUtc: time.Now().Add(-time.Duration(n) * time.Second)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	fill(0, 400)
	few, fewAgain := look()
	fill(400, 1200)
	many, manyAgain := look()
	t.Logf("transactions: %d and %d with 400 results and dead letters, %d and %d with 1200", few, fewAgain, many, manyAgain)
	if few != many || fewAgain != manyAgain || many > most || manyAgain > mostAgain {
		t.Errorf("transactions: %d and %d with 400 results and dead letters, %d and %d with 1200; at most %d and %d", few, fewAgain, many, manyAgain, most, mostAgain)
	}
}

// The first page of an app in which nothing has run says what to send, and says so no more when that has run.
func TestHomeOfANewApp(t *testing.T) {
	t.Parallel()
	b := newBench(t, inAzure())
	b.mended.Store(true)
	home := func() string {
		status, text := b.Do(http.MethodGet, console.Root, "", ann("Reader").Sign)
		if status != http.StatusOK || strings.Contains(text, "could not be asked for") {
			t.Fatalf("%d: %s", status, text)
		}
		return text
	}
	if text := home(); !strings.Contains(text, "roundhouse send store --correlation-id first") || !strings.Contains(text, "store-queue") || !strings.Contains(text, ">Healthy</span>") && !strings.Contains(text, ">Degraded</span>") {
		t.Errorf("it says %s", text)
	}
	b.Send("store-queue", `{"correlationId": "first", "input": 7}`)
	b.Deliver()
	if text := home(); strings.Contains(text, "Nothing has run here yet") || !strings.Contains(text, "Results by hour: 1<") {
		t.Errorf("after the first: %s", text)
	}
}

// An operation that has not ended is on the home page of who may see it, and not on that of another tenant, who is told what he lacks.
func TestHomeOfOthers(t *testing.T) {
	t.Parallel()
	b := newBench(t, inAzure())
	b.bury(t, "theirs", accesstest.ID("blue"), "secret failure of blue")
	form := b.hiddenForm(t, letters+"/retry?engine=store", ann("Administrator"))
	operation, _, _ := strings.Cut(b.post(t, letters+"/retry", form, ann("Administrator")).Header().Get("Location"), "?")
	b.anew()
	red := accesstest.Caller{Tenant: "red", Object: "mallory", Name: "mallory@example.com", AppRoles: []string{"Roundhouse.Administrator"}}
	_, text := b.Do(http.MethodGet, console.Root, "", ann("Reader").Sign)
	if shown := []bool{strings.Contains(text, operation), strings.Contains(text, "Dead letters by hour: 1")}; slices.Contains(shown, false) {
		t.Errorf("the home tenant sees the operation and the dead letter: %v", shown)
	}
	_, text = b.Do(http.MethodGet, console.Root, "", red.Sign)
	for _, secret := range []string{operation, "secret failure", "Dead letters by hour: 1"} {
		if strings.Contains(text, secret) {
			t.Errorf("another tenant sees %q", secret)
		}
	}
	if n := strings.Count(text, "<code>platform.read</code>"); n != 2 {
		t.Errorf("he is told %d times that he lacks platform.read", n)
	}
}
