package health

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/handler/queueprobe"
)

const (
	stuckCheck = "queues:stuck"
	// maxQueues bounds the queues that a report names.
	maxQueues = 5
)

// findStuck reports queues whose messages no host receives: the same message is next at each read.
func (h *Checks) findStuck(ctx context.Context) (map[string]Measurement, error) {
	heads, err := h.config.Heads(ctx)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(heads, func(a, b queueprobe.Head) int { return int(b.Stuck - a.Stuck) })
	m := Measurement{ComponentType: "component", ObservedUnit: "s", ObservedValue: 0.0, Status: Pass}
	var texts []string
	for i, head := range heads {
		status, limit := h.config.Thresholds.QueueStuck.judge(head.Stuck)
		if i == 0 {
			m.ObservedValue, m.Status, m.Output = head.Stuck.Seconds(), status, limit
		}
		if status != Pass && len(texts) < maxQueues {
			texts = append(texts, fmt.Sprintf("%s (%d messages, the first for %s)", head.Queue, head.Messages, head.Stuck.Round(time.Second)))
		}
	}
	if m.Status != Pass {
		m.Output = "Nobody receives the messages of " + strings.Join(texts, ", ") +
			". Is the function of the queue disabled, does the host say in its log why it does not listen, or has it stopped (docs/observability.md)? " + m.Output
	}
	return map[string]Measurement{stuckCheck: m}, nil
}
