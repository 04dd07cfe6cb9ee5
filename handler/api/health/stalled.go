package health

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/vibedata/roundhouse/orchestrator/catalog"
)

const (
	stalledCheck = "orchestrations:stalled"
	damagedCheck = "orchestrations:damaged"
	idleCheck    = "orchestrations:idle"
	// maxStalled is up to where they are counted.
	maxStalled = 1000
	// maxNames bounds the orchestrators that a report names.
	maxNames = 10
)

// countStalled compares the number of stalled orchestrations with its limit. The first one already needs an operator:
// none of them continues before its code is fixed.
func (h *Checks) countStalled(ctx context.Context) (map[string]Measurement, error) {
	t, err := h.config.Stalled(ctx)
	if err != nil {
		return nil, err
	}
	m := Measurement{ComponentType: "component", ObservedValue: t.Total(), ObservedUnit: "orchestrations"}
	if m.Status, m.Output = h.config.Thresholds.Stalled.judge(t.Total()); m.Status != Pass {
		m.Output = "The code cannot go on with " + named(t) + ": each says why (docs/failures.md). " + m.Output
	}
	return map[string]Measurement{stalledCheck: m}, nil
}

// countDamaged warns of every unreadable orchestration: an operator has to restore or to remove it.
func (h *Checks) countDamaged(ctx context.Context) (map[string]Measurement, error) {
	n, err := h.config.Damaged(ctx)
	if err != nil {
		return nil, err
	}
	m := Measurement{ComponentType: "component", ObservedValue: n, ObservedUnit: "orchestrations", Status: Pass}
	if n > 0 {
		m.Status = Warn
		m.Output = "They cannot be read: a dead letter of the engine orchestration says of each which and why (docs/recovery.md)."
	}
	return map[string]Measurement{damagedCheck: m}, nil
}

// countIdle warns of orchestrations that have neither ended nor continued for longer than the limit: nothing removes them.
func (h *Checks) countIdle(ctx context.Context) (map[string]Measurement, error) {
	t, err := h.config.Idle(ctx)
	if err != nil {
		return nil, err
	}
	m := Measurement{ComponentType: "component", ObservedValue: t.Total(), ObservedUnit: "orchestrations", Status: Pass}
	if t.Total() > 0 {
		m.Status = Warn
		m.Output = "They have neither ended nor continued for the time of ROUNDHOUSE_HEALTH_RUN_AGE, and wait for nothing that ends by itself: " + named(t) +
			". Send the event that each waits for, cancel it or terminate it (docs/retention.md)."
	}
	return map[string]Measurement{idleCheck: m}, nil
}

// named says how many there are of which orchestrator.
func named(t catalog.StatusCount) string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(t.ByOrchestrator)) {
		texts = append(texts, fmt.Sprintf("%d of %s", t.ByOrchestrator[name], name))
	}
	if len(texts) > maxNames {
		texts = append(texts[:maxNames], "others")
	}
	text := strings.Join(texts, ", ")
	if t.More {
		text += ", and more"
	}
	return text
}
