package orchestrator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/google/uuid"
)

func (e *StartEvent) validate() error {
	if e.Name == "" || len(e.Name) > maxSignalName || len(e.ID) > maxSignalName || !utf8.ValidString(e.Name+e.ID) {
		return fmt.Errorf("its name needs 1 to %d bytes of UTF-8, and its id up to as many", maxSignalName)
	}
	if len(e.Data) > 0 && (!json.Valid(e.Data) || !utf8.Valid(e.Data)) {
		return errors.New("its data is not JSON in UTF-8")
	}
	return storable(e.Data)
}

// startWithEvent is Start for a start with an event.
func (r *Runtime) startWithEvent(ctx context.Context, s Start) (Outcome, error) {
	event := *s.Event
	if event.ID = cmp.Or(event.ID, s.RequestID); event.ID == "" {
		event.ID = uuid.NewString()
	}
	raises := false
	out, err := r.startNext(ctx, s.ID, func(all []storedExecution) (plan *plannedExecution, err error) {
		if raises = false; len(all) == 0 {
			plan = firstExecution(s)
		} else if plan, raises, err = r.planWithEvent(s, event.ID, all); plan == nil {
			return nil, err
		}
		return plan.with(event, r.config.Now().UnixMicro()), nil
	})
	if err == nil && raises {
		err = r.signal(ctx, s.ID, Payload{Event: event.Name, Data: event.Data}, event.ID)
	}
	return out, err
}

// planWithEvent plans a start with an event under an id that is taken: the next execution, or none. raises reports
// that the latest execution gets the event.
func (r *Runtime) planWithEvent(s Start, eventID string, all []storedExecution) (plan *plannedExecution, raises bool, err error) {
	latest, started := latestOf(all)
	received := latest.received()
	switch {
	case started.Name != s.Orchestrator:
		return nil, false, fmt.Errorf("orchestration %s was started by %s: %w", s.ID, started.Name, ErrExists)
	case !mayRepeat(s.TenantID, started.start().Tenant):
		return nil, false, otherTenant(s.ID)
	case received.contains(eventID):
		return nil, false, nil
	case latest.active():
		return nil, true, nil
	case s.Reuse == ReuseNever:
		return nil, false, fmt.Errorf("orchestration %s has ended, so it cannot get the event: start it with ReuseEnded: %w", s.ID, ErrExists)
	}
	return freshExecution(s, latest, s.RequestID), false, nil
}

// with adds an event that has arrived by the time at, in microseconds.
func (b *plannedExecution) with(e StartEvent, at int64) *plannedExecution {
	data := e.Data
	if len(data) == 0 {
		data = json.RawMessage("null")
	}
	var h inheritance
	if b.event.Inherited != nil {
		h = *b.event.Inherited
	}
	h.Unread = append(slices.Clone(h.Unread), event{Kind: eventRaised, At: at, Name: cleanText(e.Name), Payload: compact(data), Signal: broughtBy(e.ID)})
	h.Signals = append(slices.Clone(h.Signals), e.ID)
	b.event.Inherited = &h
	return b
}
