package recovery

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/internal/hosts"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// laden gives hosts long orchestrations, some woken by an event and some with children, and short ones until the test
// ends. It waits until the long ones are in flight. Those that commit a round every half second come first, in steady.
func laden(t *testing.T, c *hosts.Cluster) (steady map[string]bool, ids []string) {
	t.Helper()
	steady = map[string]bool{}
	for i := range 12 {
		id, w := fmt.Sprint("long", i), hosts.Work{Event: i%3 == 1, Calls: 40, Lasts: 500 * time.Millisecond}
		if i%6 == 5 {
			w.Children = 3
		}
		testenv.OK(t, c.Send(t.Context(), id, w))
		ids = append(ids, hosts.ID(id))
		steady[hosts.ID(id)] = w.Children == 0
		if w.Event {
			underWay(t, c, hosts.ID(id), func(p hosts.Progress) bool { return p.Waiting == "Event" })
			testenv.OK(t, c.Raise(t.Context(), id))
		}
	}
	for _, id := range ids {
		underWay(t, c, id, func(p hosts.Progress) bool { return p.Begun() && p.Waiting != "Event" })
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(250 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ctx.Err() == nil; n++ {
			_ = c.Send(ctx, fmt.Sprint("short", n), hosts.Work{Calls: 2, Lasts: 100 * time.Millisecond}) // an error is fine: the next one follows
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return steady, ids
}

// fuller returns the one of two hosts with more work in flight.
func fuller(all []*hosts.Host) (fuller, other *hosts.Host) {
	if len(all[1].Held()) > len(all[0].Held()) {
		return all[1], all[0]
	}
	return all[0], all[1]
}

// checkHandedBack waits until all work in flight on a process has continued, and all have completed: each once, and
// without a failure.
func checkHandedBack(t *testing.T, c *hosts.Cluster, ids []string, since time.Time, hand hosts.Hand) {
	t.Helper()
	if len(hand.Begun) == 0 {
		t.Fatal("what ended had nothing in hand")
	}
	left, err := c.Await(testenv.Context(t), hand.Begun, hosts.Elsewhere)
	if err != nil || len(left) > 0 {
		t.Errorf("%v have not gone on elsewhere: %v", left, err)
	}
	t.Logf("%d orchestrations were in hand; the last went on elsewhere after %v", len(hand.Begun), time.Since(since).Round(time.Millisecond))
	for _, id := range ids {
		for _, call := range completed(t, c, id).Outcome.Calls {
			if call.Attempts > 1 {
				t.Errorf("%s: %s took %d attempts", id, call.Name, call.Attempts)
			}
		}
	}
}

// victimUnderLoad returns the one of two hosts with more work in flight, and a function that checks, after the host's
// shutdown, that this work continues.
func victimUnderLoad(t *testing.T) (victim *hosts.Host, handedBack func()) {
	t.Helper()
	c, all := newCluster(t, 2)
	steady, ids := laden(t, c)
	victim, _ = fuller(all)
	hand := testenv.Must(c.InHand(t.Context(), victim))(t)
	maps.DeleteFunc(hand.Begun, func(id string, _ hosts.Progress) bool { return !steady[id] })
	since := time.Now()
	return victim, func() {
		t.Helper()
		checkHandedBack(t, c, ids, since, hand)
	}
}

// TestHostEnds: a host is shut down under load. Its work in flight is handed back to the other host, which continues it
// immediately, without waiting for a lease or a takeover.
func TestHostEnds(t *testing.T) {
	victim, handedBack := victimUnderLoad(t)
	testenv.OK(t, victim.Terminate())
	handedBack()
	<-victim.Ended()
	if left := victim.Held(); len(left) > 0 {
		t.Errorf("the host has ended with the messages of %v", left)
	}
}

// TestHandlerEnds: a handler is shut down under load, and its host lives. The other host, or the next handler,
// continues.
func TestHandlerEnds(t *testing.T) {
	victim, handedBack := victimUnderLoad(t)
	testenv.OK(t, victim.EndHandler())
	handedBack()
}
