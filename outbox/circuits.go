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

// MaxCircuits bounds the circuits that a Dispatcher reports.
const MaxCircuits = 50

// OpenCircuit is a destination to which a process sends nothing for a while, after repeated failures.
type OpenCircuit struct {
	Destination string `json:"destination"`
	// Since is when the circuit opened. From Until on, the next message for the destination is tried.
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	// Failures counts the consecutive failures.
	Failures int `json:"failures"`
	// Reason is the kind of the last failure. It contains nothing of the destination's answer, which may be a payload that
	// readers of this value may not see.
	Reason string `json:"reason"`
}

// tellCircuits reports the open circuits to the callback. The list is made under the same lock, so the last report is
// current.
func (d *Dispatcher) tellCircuits() {
	if d.circuits == nil {
		return
	}
	d.telling.Lock()
	defer d.telling.Unlock()
	d.circuits(d.openCircuits())
}

// openCircuits returns the open circuits, by the names of their destinations, MaxCircuits at most.
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

// state returns the circuit without its destination; ok is false for a closed one.
func (c *circuit) state() (s OpenCircuit, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return OpenCircuit{Since: c.since, Until: c.openUntil, Failures: c.consecutive, Reason: c.reason}, !c.openUntil.IsZero()
}

// failureKind returns the kind of a failure, in words that contain nothing of the request or the answer.
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

// said is a process's report of its circuits.
type said struct {
	Circuits []OpenCircuit `json:"circuits"`
}

// EncodeCircuits encodes the open circuits as a text, "" for none.
func EncodeCircuits(open []OpenCircuit) string {
	if len(open) == 0 {
		return ""
	}
	text, err := json.Marshal(said{open})
	if err != nil {
		return "" // unreachable except for a time after the year 9999
	}
	return string(text)
}

// DecodeCircuits is the inverse of EncodeCircuits.
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
