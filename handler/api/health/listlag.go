package health

import "context"

const listLagCheck = "orchestrations:listRepairLag"

// measureListLag compares the lag of the repair of the list of orchestrations with its limit: errors in the list stay
// while no pass ends.
func (h *Checks) measureListLag(ctx context.Context) (map[string]Measurement, error) {
	lag, err := h.config.ListLag(ctx)
	if err != nil {
		return nil, err
	}
	m := Measurement{ComponentType: "component", ObservedValue: lag.Seconds(), ObservedUnit: "s"}
	if m.Status, m.Output = h.config.Thresholds.ListLag.judge(lag); m.Status != Pass {
		m.Output = "The list of orchestrations may miss some: the log of orchestration-sweep-timer says why its repair is not done. " + m.Output
	}
	return map[string]Measurement{listLagCheck: m}, nil
}
