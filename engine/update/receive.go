package update

import (
	"encoding/json"
	"fmt"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/release"
	"github.com/vibedata/roundhouse/outbox/receiver"
)

// AdaptNotice converts a publisher's event about a release to a message; ok is false for other events. The
// correlation id is the id of the event in the publisher's outbox, so that an event that is delivered twice is one
// message, and the run can be found from there.
func AdaptNotice(body []byte) (m engine.Message, ok bool, err error) {
	e, err := receiver.Parse(body)
	if err != nil || e.Type != release.EventAvailable {
		return engine.Message{}, false, err
	}
	var n release.Notice
	if err := json.Unmarshal(e.Data, &n); err != nil {
		return engine.Message{}, true, fmt.Errorf("%w: %w", ErrInput, err)
	}
	in := Input{Version: n.Version, Ring: n.Ring, Released: n.Released}
	for _, c := range n.Components {
		in.Components = append(in.Components, Target(c))
	}
	m = engine.Message{CorrelationID: e.ID, Engine: Engine, Operation: OperationProcess, InstanceID: n.InstanceID, TenantID: n.TenantID}
	if m.Input, err = json.Marshal(in); err != nil {
		return engine.Message{}, true, err
	}
	if n.InstanceID == "" {
		return m, true, fmt.Errorf("%w: the notice names no instance", ErrInput)
	}
	return m, true, validate(m.Operation, m.InstanceID, in)
}
