package recovery

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/internal/azurite"
	"github.com/vibedata/roundhouse/internal/hosts"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
)

// newCluster starts hosts over their own Azurite, with additional environment variables for their handlers. Their
// leases on messages are those of the real host, ten minutes: work that continues after a host was killed does so
// without its messages.
func newCluster(t *testing.T, n int, environment ...string) (*hosts.Cluster, []*hosts.Host) {
	t.Helper()
	testenv.Long(t)
	t.Parallel()
	server := testenv.Must(azurite.Start(testenv.Context(t), azurite.Config{}))(t)
	c := testenv.Must(hosts.New(hosts.Config{Dir: t.TempDir(), Account: server.Account(), Environment: environment}))(t)
	t.Cleanup(func() {
		c.Close()
		if t.Failed() {
			t.Log(c.Logs())
		}
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	var all []*hosts.Host
	for range n {
		h := testenv.Must(c.Start(testenv.Context(t)))(t)
		all = append(all, h)
	}
	return c, all
}

// inHand gives hosts orchestrations of all kinds: in an activity, in a timer, woken by an event. It waits until all are
// in flight. None ends before release.
func inHand(t *testing.T, c *hosts.Cluster) (ids []string, release func()) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "released")
	work := map[string]hosts.Work{
		"calls": {Calls: 1, Lasts: time.Second, Hold: file},
		"naps":  {Naps: 2, Nap: 5 * time.Second, Hold: file},
		"event": {Event: true, Hold: file},
	}
	for kind, w := range work {
		for i := range 3 {
			id := fmt.Sprint(kind, i)
			testenv.OK(t, c.Send(t.Context(), id, w))
			ids = append(ids, hosts.ID(id))
			if !w.Event {
				continue
			}
			underWay(t, c, hosts.ID(id), func(p hosts.Progress) bool { return p.Waiting == "Event" })
			testenv.OK(t, c.Raise(t.Context(), id))
		}
	}
	for _, id := range ids {
		underWay(t, c, id, func(p hosts.Progress) bool { return p.Begun() && p.Waiting != "Event" })
	}
	return ids, func() {
		t.Helper()
		testenv.OK(t, os.WriteFile(file, nil, 0o600))
	}
}

func underWay(t *testing.T, c *hosts.Cluster, id string, as func(hosts.Progress) bool) {
	t.Helper()
	testenv.Until(t, id+" is under way", func() bool {
		all, err := c.Progress(t.Context())
		return err == nil && as(all[id])
	})
}

// checkElsewhere waits until all have completed, and checks that the dead process had work in flight, all of which
// continued elsewhere. It returns the number of takeovers. The rest was handed back, as a handler does after the death
// of its host, if it lives long enough.
func checkElsewhere(t *testing.T, c *hosts.Cluster, ids []string, hand hosts.Hand) (over int) {
	t.Helper()
	if len(hand.Begun) == 0 {
		t.Fatal("what died had nothing in hand")
	}
	for _, id := range ids {
		in := completed(t, c, id)
		before, lost := hand.Begun[id]
		if !lost {
			continue
		}
		if in.Node == before.Node {
			t.Errorf("%s has completed at %s, which died", id, in.Node)
		}
		taken := 0
		for _, r := range in.Rounds {
			for _, e := range r.Learned {
				if e.Kind == "ExecutionTakenOver" {
					taken = 1
				}
			}
		}
		over += taken
	}
	t.Logf("%d of %d orchestrations were in hand; %d of them were taken over", len(hand.Begun), len(ids), over)
	return over
}

// completed waits until an orchestration has completed in its first execution, without a failure.
func completed(t *testing.T, c *hosts.Cluster, id string) orchestrator.Inspection {
	t.Helper()
	testenv.Await(t, "the end of "+id, func() (now hosts.Progress, ok bool) {
		all, err := c.Progress(t.Context())
		return all[id], err == nil && all[id].Ended()
	})
	in, err := c.Inspect(t.Context(), id)
	if err != nil || in.Status != orchestrator.Completed || in.Execution != 1 {
		t.Errorf("%s: execution %d is %s: %v, %v", id, in.Execution, in.Status, in.Outcome.Failure, err)
	}
	return in
}

// TestHostKilled: a host is killed with its handler. The other one continues the work in flight.
func TestHostKilled(t *testing.T) {
	c, all := newCluster(t, 2)
	ids, release := inHand(t, c)
	victim, other := fuller(all)
	hand := testenv.Must(c.InHand(t.Context(), victim))(t)
	victim.Kill()
	testenv.Await(t, "the other host has all in hand", func() (left []string, ok bool) {
		now, err := c.Progress(t.Context())
		held := other.Held()
		for id, before := range hand.Begun {
			if !hosts.Elsewhere(before, now[id]) && !slices.Contains(held, id) {
				left = append(left, id)
			}
		}
		return left, err == nil && len(left) == 0
	})
	release()
	checkElsewhere(t, c, ids, hand)
}

// TestHandlerKilled: a handler is killed, and its host starts another one, which continues the work in flight.
func TestHandlerKilled(t *testing.T) {
	c, all := newCluster(t, 1)
	ids, release := inHand(t, c)
	hand := testenv.Must(c.InHand(t.Context(), all[0]))(t)
	testenv.OK(t, all[0].KillHandler())
	lost := hand.Begun
	if left, err := c.Await(testenv.Context(t), lost, hosts.Elsewhere); err != nil {
		t.Fatalf("%v do not continue: %v", left, err)
	}
	release()
	if over := checkElsewhere(t, c, ids, hand); over != len(lost) { // no process could hand work back
		t.Errorf("%d were in hand, %d were taken over", len(lost), over)
	}
}
