package health

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/orchestrator/nodes"
)

// Processes of an older version that go on working are told of, and those of an update that is under way, or over, are not.
func TestVersions(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	node := func(version string, began, seen time.Duration, state nodes.State) nodes.Info {
		return nodes.Info{Version: version, Since: now.Add(-began), Seen: now.Add(-seen), State: state}
	}
	const day = 24 * time.Hour
	newer := node("v2", 3*time.Hour, time.Minute, nodes.StateAlive)
	for name, test := range map[string]struct {
		nodes    []nodes.Info
		err      error
		limits   Limit[time.Duration]
		want     Status
		versions int
		names    string
	}{
		"none":              {want: Pass},
		"one":               {nodes: []nodes.Info{newer}, want: Pass, versions: 1},
		"one, several":      {nodes: []nodes.Info{newer, node("v2", day, 0, nodes.StateAlive)}, want: Pass, versions: 1},
		"an old one":        {nodes: []nodes.Info{newer, node("v1", 9*day, time.Minute, nodes.StateAlive)}, want: Warn, versions: 2, names: "v1"},
		"without a version": {nodes: []nodes.Info{newer, node("", 9*day, time.Minute, nodes.StateAlive)}, want: Warn, versions: 2, names: "(unknown)"},
		"an update":         {nodes: []nodes.Info{node("v2", 50*time.Minute, 0, nodes.StateAlive), node("v1", 9*day, 0, nodes.StateAlive)}, want: Pass, versions: 2},
		"it has left":       {nodes: []nodes.Info{newer, node("v1", 9*day, time.Minute, nodes.StateGone)}, want: Pass, versions: 1},
		"it was killed":     {nodes: []nodes.Info{newer, node("v1", 9*day, 150*time.Minute, nodes.StateAlive)}, want: Pass, versions: 1},
		"own limits":        {nodes: []nodes.Info{newer, node("v1", 9*day, 0, nodes.StateAlive)}, limits: Limit[time.Duration]{time.Minute, time.Hour}, want: Fail, versions: 2, names: "v1"},
		"no answer":         {err: errors.New("no line"), want: Fail},
	} {
		w := newWorld(t)
		w.config.Now, w.config.Thresholds.VersionMix = func() time.Time { return now }, test.limits
		w.config.Nodes = func(context.Context) ([]nodes.Info, error) { return test.nodes, test.err }
		m := w.checks(t).Full(t.Context()).Checks[versionsCheck][0]
		if m.Status != test.want || test.err == nil && m.ObservedValue != test.versions || !strings.Contains(m.Output, test.names) || strings.Contains(m.Output, "v2") {
			t.Errorf("%s: %+v", name, m)
		}
	}
}
