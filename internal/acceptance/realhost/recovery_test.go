package realhost

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/internal/hosts"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator/nodes"
)

// TestHostIsKilled kills one of two hosts with orchestrations in flight. The other host continues them, although the
// host's leases on their messages last ten minutes. The test logs when the last one continued.
func TestHostIsKilled(t *testing.T) {
	testenv.RealHost(t)
	testenv.RealHostQueues(t)
	c, all := twoHosts(t)
	work := map[string]hosts.Work{
		"calls": {Calls: 20, Lasts: 3 * time.Second},
		"naps":  {Naps: 3, Nap: 20 * time.Second},
		"short": {Calls: 100, Lasts: 500 * time.Millisecond},
	}
	var ids []string
	for kind, w := range work {
		for i := range 5 {
			id := fmt.Sprint(kind, i)
			testenv.OK(t, c.Send(t.Context(), id, w))
			ids = append(ids, hosts.ID(id))
		}
	}
	progress := func() map[string]hosts.Progress {
		now := testenv.Must(c.Progress(t.Context()))(t)
		return now
	}
	testenv.Until(t, "all are under way", func() bool { return len(progress()) == len(ids) })
	victim := 0
	if len(inHandOf(t, c, all[1].handler())) > len(inHandOf(t, c, all[0].handler())) {
		victim = 1
	}
	handler := all[victim].handler()
	since := time.Now()
	all[victim].kill(t)
	lost := inHandOf(t, c, handler)
	if len(lost) == 0 {
		t.Fatal("the host had nothing in hand")
	}
	left, err := c.Await(testenv.Context(t), lost, hosts.FurtherOn)
	if err != nil || len(left) > 0 {
		t.Errorf("%d of %d orchestrations of the host that was killed do not continue: %v, %v", len(left), len(lost), left, err)
	}
	t.Logf("%d orchestrations were in hand of the host that was killed; the last one went on %.1f s after", len(lost), time.Since(since).Seconds())
	for _, id := range ids {
		testenv.Until(t, "the end of "+id, func() bool { return progress()[id].Ended() })
	}
}

// twoHosts starts two hosts over one storage, with the app of package hosts and the deployed settings.
func twoHosts(t *testing.T) (*hosts.Cluster, []*real) {
	t.Helper()
	one := app{dist: filepath.Join(t.TempDir(), "dist"), account: storage(t), key: newKey(), id: "killed", env: []string{hosts.HandlerRole}}
	testenv.OK(t, hosts.Stage(one.dist))
	editJSON(t, filepath.Join(one.dist, "host.json"), func(host map[string]any) { delete(host, "extensionBundle") })
	withQueues(t, one.dist)
	two := one
	two.dist = filepath.Join(t.TempDir(), "copy")
	copyDir(t, two.dist, one.dist)
	c := testenv.Must(hosts.New(hosts.Config{Dir: t.TempDir(), Account: one.account}))(t)
	t.Cleanup(c.Close)
	return c, []*real{startReal(t, one), startReal(t, two)}
}

// inHandOf returns the orchestrations that a process drives, by its process id: their status has the name of its node.
func inHandOf(t *testing.T, c *hosts.Cluster, pid int) map[string]hosts.Progress {
	t.Helper()
	known, err1 := nodes.List(t.Context(), c.Tables, "")
	all, err2 := c.Progress(t.Context())
	testenv.OK(t, errors.Join(err1, err2))
	mine := map[string]hosts.Progress{}
	for _, n := range known {
		for id, p := range all {
			if n.PID == pid && p.Node == n.Name && !p.Ended() {
				mine[id] = p
			}
		}
	}
	return mine
}
