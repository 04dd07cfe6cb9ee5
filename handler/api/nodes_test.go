package api

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator/nodes"
)

func fourNodes() []nodes.Info {
	began := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	return []nodes.Info{
		{Name: "b", State: nodes.StateAlive, Since: began, Seen: began},
		{Name: "lost", Host: "web/17", PID: 411, Version: "1.2", State: nodes.StateTaken, Since: began.Add(time.Minute), Seen: began.Add(time.Hour),
			Hand: nodes.Hand{Count: 3, Orchestrations: []string{"hmac-payments"}, More: true}, TakenBy: "a", TakenAt: began.Add(2 * time.Hour), TakenOver: 3, Finished: true},
		{Name: "gone", State: nodes.StateGone, Since: began.Add(-time.Hour), Seen: began},
		{Name: "a", State: nodes.StateAlive, Since: began, Seen: began.Add(3 * time.Hour)},
	}
}

// Nodes are listed by when they began, page by page, also while they write their rows.
func TestListNodes(t *testing.T) {
	t.Parallel()
	all := fourNodes()
	b := newOutboxBenchWith(t, inMemory(), func(c *Config) { c.Nodes = func(context.Context) ([]nodes.Info, error) { return fourNodes(), nil } })
	tests := map[string]struct {
		query string
		want  []string
		more  bool
	}{
		"all":             {"", []string{"lost", "b", "a", "gone"}, false},
		"a page":          {"?limit=2", []string{"lost", "b"}, true},
		"as many":         {"?limit=4", []string{"lost", "b", "a", "gone"}, false},
		"alive":           {"?state=alive", []string{"b", "a"}, false},
		"alive, a page":   {"?state=alive&limit=1", []string{"b"}, true},
		"gone":            {"?state=gone&limit=1", []string{"gone"}, false},
		"taken over from": {"?state=taken", []string{"lost"}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			page := data[list[nodeItem]](t, b.get(t, "/api/nodes"+tt.query))
			var got []string
			for _, n := range page.Items {
				got = append(got, n.Node)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || (page.ContinuationToken != "") != tt.more {
				t.Errorf("token %q (-want +got):\n%s", page.ContinuationToken, diff)
			}
		})
	}
	lost := all[1]
	want := nodeItem{Node: "lost", Host: "web/17", PID: 411, Version: "1.2", State: "taken", SinceUtc: lost.Since, SeenUtc: lost.Seen, InHand: 3,
		Orchestrations: []string{"hmac-payments"}, More: true, TakenBy: "a", TakenAtUtc: lost.TakenAt, TakenOver: 3, Finished: true}
	testenv.Diff(t, []nodeItem{want}, data[list[nodeItem]](t, b.get(t, "/api/nodes?state=taken")).Items, "")
	var got []string
	query := ""
	for range 2 * len(all) {
		page := data[list[nodeItem]](t, b.get(t, "/api/nodes?limit=1"+query))
		for _, n := range page.Items {
			got = append(got, n.Node)
		}
		if page.ContinuationToken == "" {
			break
		}
		query = "&continuationToken=" + page.ContinuationToken
	}
	testenv.Diff(t, []string{"lost", "b", "a", "gone"}, got, "page by page")
}

func TestListNodesRefused(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	if page := data[list[nodeItem]](t, b.get(t, "/api/nodes")); len(page.Items) != 0 {
		t.Errorf("%+v", page)
	}
	for query, status := range map[string]int{"?state=dead": 400, "?limit=0": 400, "?continuationToken=x": 400, "?node=a": 400} {
		if rec := b.get(t, "/api/nodes"+query); rec.Code != status {
			t.Errorf("%s: %d %s", query, rec.Code, rec.Body)
		}
	}
	if rec := b.get(t, "/api/nodes", "X-MS-CLIENT-PRINCIPAL", caller("ann", "red", "operator")); rec.Code != http.StatusForbidden {
		t.Errorf("somebody of another tenant: %d %s", rec.Code, rec.Body)
	}
	b.refuse = func(c faults.Call) bool { return c.Operation == "Query" }
	if rec := b.get(t, "/api/nodes"); rec.Code != http.StatusServiceUnavailable {
		t.Errorf("storage is away: %d %s", rec.Code, rec.Body)
	}
}
