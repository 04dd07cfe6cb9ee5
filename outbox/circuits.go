package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"time"
)

// MaxCircuits bounds how many circuits a Dispatcher names.
const MaxCircuits = 50

// OpenCircuit is a destination to which a process sends nothing for a while, because it failed again and again.
type OpenCircuit struct {
	Destination string `json:"destination"`
	// Since is when the circuit opened. From Until on, the next message for the destination is tried.
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	// Failures is how many deliveries have failed one after another.
	Failures int `json:"failures"`
	// Reason is of which kind the last failure was. The answer of the destination is none of it: that may be a payload, and who
	// reads this may not read payloads.
	Reason string `json:"reason"`
}

// tellCircuits tells whoever wants to know which circuits are open. Who is told last is told what is so then, because the list is made
// under the same lock.
func (d *Dispatcher) tellCircuits() {
	if d.circuits == nil {
		return
	}
	d.telling.Lock()
	defer d.telling.Unlock()
	d.circuits(d.openCircuits())
}

// openCircuits are the circuits that are open, by the names of their destinations, MaxCircuits at most.
func (d *Dispatcher) openCircuits() (open []OpenCircuit) {
	d.mu.Lock()
	all := maps.Clone(d.destinations)
	d.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if c, ok := all[name].circuit.state(); ok && len(open) < MaxCircuits {
			c.Destination = name
			open = append(open, c)
		}
	}
	return open
}

// state is the circuit without its destination; ok is false for one that is closed.
func (c *circuit) state() (s OpenCircuit, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return OpenCircuit{Since: c.since, Until: c.openUntil, Failures: c.consecutive, Reason: c.reason}, !c.openUntil.IsZero()
}

// failureKind is of which kind a failure is, in words that hold nothing of what was sent or answered.
func failureKind(err error) string {
	var answered *DeliveryError
	var unknown *net.DNSError
	var refused *net.OpError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &answered) && answered.Status != 0:
		return fmt.Sprintf("status %d", answered.Status)
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	case errors.As(err, &unknown):
		return "the name of the host cannot be resolved"
	case errors.As(err, &refused) && refused.Op == "dial":
		return "no connection"
	}
	return "the delivery failed"
}

// said is what a process says of its circuits to others.
type said struct {
	Circuits []OpenCircuit `json:"circuits"`
}

// EncodeCircuits makes a text of the circuits that are open, "" of none.
func EncodeCircuits(open []OpenCircuit) string {
	if len(open) == 0 {
		return ""
	}
	text, err := json.Marshal(said{open})
	if err != nil {
		return "" // unreachable but for a time after the year 9999
	}
	return string(text)
}

// DecodeCircuits is the reverse of EncodeCircuits.
func DecodeCircuits(text string) ([]OpenCircuit, error) {
	if text == "" {
		return nil, nil
	}
	var s said
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return nil, fmt.Errorf("read open circuits: %w", err)
	}
	return s.Circuits, nil
}
