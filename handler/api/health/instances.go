package health

import "context"

const instancesCheck = "registry:instances"

// countInstances warns while the registry has no instance for the engines: then they do nothing, and no other check
// reports it.
func (h *Checks) countInstances(ctx context.Context) (map[string]Measurement, error) {
	some, err := h.config.Instances(ctx)
	if err != nil {
		return nil, err
	}
	m := Measurement{ComponentType: "component", Status: Pass}
	if !some {
		m.Status = Warn
		m.Output = "No instance is registered, so that the engines have nothing to work on: set ROUNDHOUSE_INSTANCE_ID, or add one with roundhouse registry add (docs/registry.md)."
	}
	return map[string]Measurement{instancesCheck: m}, nil
}
