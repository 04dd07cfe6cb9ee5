package health

import (
	"context"
	"strings"
)

const unusableCheck = "settings:unusable"

// listUnusable warns of settings that can never work.
func (h *Checks) listUnusable(context.Context) (map[string]Measurement, error) {
	found := h.config.Unusable()
	m := Measurement{ComponentType: "component", ObservedValue: len(found), ObservedUnit: "settings", Status: Pass}
	if len(found) > 0 {
		m.Status, m.Output = Warn, strings.Join(found, "; ")
	}
	return map[string]Measurement{unusableCheck: m}, nil
}
