package health

import (
	"context"
	"time"
)

const drainedCheck = "app:drained"

// readDrained warns while the app is drained: the value is the remaining time.
func (h *Checks) readDrained(ctx context.Context) (map[string]Measurement, error) {
	flag, err := h.config.Drained(ctx)
	if err != nil {
		return nil, err
	}
	m := Measurement{ComponentType: "component", Status: Pass}
	if now := h.config.Now(); flag.Set(now) {
		m.Status, m.ObservedValue, m.ObservedUnit = Warn, flag.Until.Sub(now).Round(time.Second).Seconds(), "s"
		m.Output = "The app does no work until " + flag.Until.Format(time.RFC3339) + ", for an update: roundhouse drain --end lets it work again (docs/operating.md)."
	}
	return map[string]Measurement{drainedCheck: m}, nil
}
