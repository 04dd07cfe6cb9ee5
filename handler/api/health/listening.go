package health

import (
	"context"
	"fmt"
	"time"
)

const listeningCheck = "queues:listening"

// measureListening reports that no host listens to the queues: the host reports it only in its own log.
func (h *Checks) measureListening(ctx context.Context) (map[string]Measurement, error) {
	s, err := h.config.Listening(ctx)
	if err != nil {
		return nil, err
	}
	now := h.config.Now()
	m := Measurement{ComponentType: "component", Status: Pass}
	if !s.HeardAt.IsZero() {
		m.ObservedValue, m.ObservedUnit = now.Sub(s.HeardAt).Round(time.Second).Seconds(), "s"
	}
	switch {
	case s.Deaf():
		m.Status = Fail
		m.Output = fmt.Sprintf("Messages of the queue %s do not come to the app: one of %s has not. Is there an error about queueTrigger in the host's log "+
			"(then its extension bundle is missing), is the function of the queue disabled, or is the host drained (docs/operating.md)?", s.Queue, s.SentAt.Format(time.RFC3339))
	case s.Silent(now, h.started):
		m.Status = Warn
		m.Output = "Nobody has looked for a while whether messages come: orchestration-sweep-timer does not run. Is it disabled, or is the app or its host drained (docs/operating.md)?"
	}
	return map[string]Measurement{listeningCheck: m}, nil
}
