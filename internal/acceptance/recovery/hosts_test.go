package recovery

import (
	"fmt"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/internal/azurite"
	"github.com/vibedata/roundhouse/internal/hosts"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
)

// newCluster starts hosts over an Azurite of their own, with something in the environment of their handlers. Their leases on messages are
// those of the real host, ten minutes: what continues after a host was killed does so without its messages.
func newCluster(t *testing.T, n int, environment ...string) (*hosts.Cluster, []*hosts.Host) {
	t.Helper()
	testenv.Long(t)
	t.Parallel()
	server, err := azurite.Start(testenv.Context(t), azurite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := hosts.New(hosts.Config{Dir: t.TempDir(), Account: server.Account(), Environment: environment})
	if err != nil {
		t.Fatal(err)
	}
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
		h, err := c.Start(testenv.Context(t))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, h)
	}
	return c, all
}

// inHand gives hosts orchestrations of all kinds: in an activity, in a timer, woken by an event. It waits until all are under way.
func inHand(t *testing.T, c *hosts.Cluster) (ids []string) {
	t.Helper()
	work := map[string]hosts.Work{
		"calls": {Calls: 4, Lasts: 5 * time.Second},
		"naps":  {Naps: 2, Nap: 10 * time.Second},
		"event": {Event: true, Calls: 4, Lasts: 5 * time.Second},
	}
	for kind, w := range work {
		for i := range 3 {
			id := fmt.Sprint(kind, i)
			if err := c.Send(t.Context(), id, w); err != nil {
				t.Fatal(err)
			}
			ids = append(ids, hosts.ID(id))
			if !w.Event {
				continue
			}
			underWay(t, c, hosts.ID(id), func(p hosts.Progress) bool { return p.Waiting == "Event" })
			if err := c.Raise(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, id := range ids {
		underWay(t, c, id, func(p hosts.Progress) bool { return p.Begun() && p.Waiting != "Event" })
	}
	return ids
}

func underWay(t *testing.T, c *hosts.Cluster, id string, as func(hosts.Progress) bool) {
	t.Helper()
	testenv.Until(t, id+" is under way", func() bool {
		all, err := c.Progress(t.Context())
		return err == nil && as(all[id])
	})
}

// checkElsewhere waits until all have completed, and counts those that were in hand of what died and went on elsewhere, and those of
// them that were taken over. The others were handed back: a handler that sees its host die does so, if it lives long enough. A message
// that a host holds while its orchestration goes on at the node that ended it was only about to be deleted.
func checkElsewhere(t *testing.T, c *hosts.Cluster, ids []string, lost map[string]hosts.Progress) (elsewhere, over int) {
	t.Helper()
	for _, id := range ids {
		testenv.Until(t, "the end of "+id, func() bool {
			all, err := c.Progress(t.Context())
			return err == nil && all[id].Ended()
		})
		in, err := c.Inspect(t.Context(), id)
		if err != nil || in.Status != orchestrator.Completed || in.Execution != 1 {
			t.Errorf("%s: execution %d is %s: %v, %v", id, in.Execution, in.Status, in.Outcome.Failure, err)
		}
		taken := 0
		for _, r := range in.Rounds {
			for _, e := range r.Learned {
				if e.Kind == "ExecutionTakenOver" {
					taken++
				}
			}
		}
		if before, ok := lost[id]; ok && in.Node != before.Node {
			elsewhere++
			over += min(taken, 1)
		}
	}
	if elsewhere == 0 {
		t.Fatal("what died had nothing in hand")
	}
	t.Logf("%d of %d orchestrations were in hand, and went on elsewhere; %d of them were taken over", elsewhere, len(ids), over)
	return elsewhere, over
}

// TestHostKilled: a host is killed with its handler. The other one goes on with what was in hand.
func TestHostKilled(t *testing.T) {
	c, all := newCluster(t, 2)
	ids := inHand(t, c)
	victim := all[0]
	if len(all[1].Held()) > len(victim.Held()) {
		victim = all[1]
	}
	victim.Kill()
	hand, err := c.InHand(t.Context(), victim)
	if err != nil {
		t.Fatal(err)
	}
	checkElsewhere(t, c, ids, hand.Begun)
}

// TestHandlerKilled: a handler is killed, and its host starts another one, which goes on with what was in hand.
func TestHandlerKilled(t *testing.T) {
	c, all := newCluster(t, 1)
	ids := inHand(t, c)
	hand, err := c.InHand(t.Context(), all[0]) // before, since the next handler takes over at once
	if err != nil {
		t.Fatal(err)
	}
	if err := all[0].KillHandler(); err != nil {
		t.Fatal(err)
	}
	if elsewhere, over := checkElsewhere(t, c, ids, hand.Begun); elsewhere != len(hand.Begun) || over != elsewhere { // nobody could hand anything back
		t.Errorf("%d were in hand, %d went on elsewhere, %d were taken over", len(hand.Begun), elsewhere, over)
	}
}
