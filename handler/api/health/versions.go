package health

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/orchestrator/nodes"
)

const (
	versionsCheck = "nodes:versions"
	// recent is the maximum age of a process's last heartbeat that counts. An idle process sends none.
	recent = time.Hour
	// maxVersions bounds the versions that a report names.
	maxVersions = 5
)

// compareVersions warns when processes of an older version of the program continue to work although a newer one runs:
// that is normal during an update, and not for longer.
func (h *Checks) compareVersions(ctx context.Context) (map[string]Measurement, error) {
	all, err := h.config.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	old, versions := olderVersions(all, h.config.Now())
	m := Measurement{ComponentType: "component", ObservedValue: versions, ObservedUnit: "versions"}
	var longest time.Duration
	var texts []string
	for version, since := range old {
		longest = max(longest, since)
		texts = append(texts, fmt.Sprintf("%s %s after that of a newer version began", version, since.Round(time.Second)))
	}
	if m.Status, m.Output = h.config.Thresholds.VersionMix.judge(longest); m.Status != Pass {
		slices.Sort(texts)
		m.Output = "Processes of older versions still work: " + strings.Join(texts[:min(len(texts), maxVersions)], ", ") +
			". Is there a slot, a machine or a deployment that the update has not reached (roundhouse nodes)? " + m.Output
	}
	return map[string]Measurement{versionsCheck: m}, nil
}

// olderVersions returns the versions other than the newest one, of recently seen processes, each with the time from
// the newest version's start to its last heartbeat. versions is their number, the newest included.
func olderVersions(all []nodes.Info, now time.Time) (old map[string]time.Duration, versions int) {
	began, seen := map[string]time.Time{}, map[string]time.Time{}
	for _, n := range all {
		version := n.Version
		if version == "" {
			version = "(unknown)"
		}
		if first, known := began[version]; !known || n.Since.Before(first) {
			began[version] = n.Since
		}
		if n.State == nodes.StateAlive && now.Sub(n.Seen) < recent && n.Seen.After(seen[version]) {
			seen[version] = n.Seen
		}
	}
	newest := ""
	for version := range seen {
		if newest == "" || began[version].After(began[newest]) {
			newest = version
		}
	}
	old = map[string]time.Duration{}
	for version, last := range seen {
		if version != newest {
			old[version] = last.Sub(began[newest])
		}
	}
	return old, len(seen)
}
