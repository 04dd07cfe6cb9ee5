package consumers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/vibedata/roundhouse/outbox"
)

// maxVersions bounds the versions that one question checks, because each may cost a read.
const maxVersions = 10

// Version is an announced version, with the times promised to its consumers.
type Version struct {
	// Version is the name of the version in acknowledgements.
	Version string
	// TenantID and EventID name the event that announces it, in the outbox.
	TenantID, EventID string
	// A consumer has adopted a version Grace after it arrived, or after From when it arrived before that.
	From  time.Time
	Grace time.Duration
}

// taken returns when a consumer has adopted the version, given its arrival.
func (v Version) taken(arrived time.Time) time.Time {
	if arrived.Before(v.From) {
		arrived = v.From
	}
	return arrived.Add(v.Grace)
}

// Question asks whether the predecessors of a version may be retired.
type Question struct {
	// Target is the rotated credential.
	Target string
	// Versions are the version and the later usable ones, oldest first: any of them is sufficient for a consumer.
	Versions []Version
	// Retires names the predecessors, for operators.
	Retires []string
	// Waited means that the previous answer was Waiting.
	Waited bool
	// Now is a time that has passed, even if this process's clock is behind.
	Now time.Time
}

// Waiting is the reason why predecessors may not be retired yet. Waiting runs record it.
type Waiting struct {
	// Version is the version that has not arrived everywhere, EventID the event that announces it.
	Version string `json:"version"`
	EventID string `json:"eventId"`
	// Missing describes the consumers that have neither the version nor a later one. When it is empty, the last of
	// them has adopted it at ReadyAtUtc.
	Missing    []string  `json:"missing,omitempty"`
	ReadyAtUtc time.Time `json:"readyAtUtc,omitzero"`
	// Retires names the versions that stay usable meanwhile.
	Retires []string `json:"retires,omitempty"`
	// Patience and Roles are those of Config.
	Patience time.Duration `json:"patience"`
	Roles    []string      `json:"roles,omitempty"`
}

// Arrived returns nil when one of the versions has arrived at each consumer and was adopted, or else the reason to
// wait. The errors are those of the outbox and of the store, after which it can be repeated.
func (c *Consumers) Arrived(ctx context.Context, q Question) (*Waiting, error) {
	if len(q.Versions) == 0 {
		return nil, fmt.Errorf("consumers of %s %.200q: no version to ask about", c.config.Engine, q.Target)
	}
	w, err := c.waiting(ctx, q)
	if err != nil {
		return nil, err
	}
	switch {
	case w != nil && len(w.Missing) > 0:
		err = c.note(ctx, q.Target, *w)
	case q.Waited:
		err = c.Settled(ctx, q.Target)
	}
	return w, err
}

// waiting is Arrived without recording the result.
func (c *Consumers) waiting(ctx context.Context, q Question) (*Waiting, error) {
	if len(q.Versions) > maxVersions { // the current one and the latest ones, which are the likeliest to have arrived
		q.Versions = append(slices.Clone(q.Versions[:1]), q.Versions[len(q.Versions)-maxVersions+1:]...)
	}
	q.Now = later(q.Now, c.config.Now())
	ready, missing, err := c.receiver(ctx, q)
	if err != nil {
		return nil, err
	}
	if t, ok := c.Target(q.Target); ok {
		latest, without, err := c.named(ctx, q, t.Names)
		if err != nil {
			return nil, err
		}
		ready, missing = later(ready, latest), append(missing, without...)
	}
	if len(missing) == 0 && !ready.After(q.Now) {
		return nil, nil
	}
	w := &Waiting{Version: q.Versions[0].Version, EventID: q.Versions[0].EventID, Missing: missing, Retires: q.Retires, Patience: c.config.Patience, Roles: c.config.Roles}
	if len(missing) == 0 {
		w.ReadyAtUtc = ready.UTC()
	}
	return w, nil
}

// receiver returns when the receiver of events has adopted one of the versions, or the missing receiver when no event
// was delivered.
func (c *Consumers) receiver(ctx context.Context, q Question) (ready time.Time, missing []string, err error) {
	found, state := false, ""
	for i, v := range q.Versions {
		event, err := c.config.Outbox.Get(ctx, v.TenantID, v.EventID)
		gone := errors.Is(err, outbox.ErrNotFound)
		if err != nil && !gone {
			return time.Time{}, nil, fmt.Errorf("event %s of version %s: %w", v.EventID, v.Version, err)
		}
		if !gone && event.Status == outbox.StatusProcessed {
			if taken := v.taken(event.ProcessedAt); !found || taken.Before(ready) {
				found, ready = true, taken
			}
			if !ready.After(q.Now) {
				break
			}
		}
		if i == 0 {
			state = string(event.Status)
		}
		if i == 0 && gone {
			state = "not in the outbox"
		}
	}
	if !found {
		missing = []string{fmt.Sprintf("the receiver of event %s (%s)", q.Versions[0].EventID, state)}
	}
	return ready, missing, nil
}

// named returns when the last of the registered consumers has adopted one of the versions, and the consumers that
// have acknowledged none.
func (c *Consumers) named(ctx context.Context, q Question, names []string) (ready time.Time, missing []string, err error) {
	acknowledged, err := c.Acknowledged(ctx, q.Target)
	if err != nil {
		return time.Time{}, nil, err
	}
	for _, name := range names {
		var first time.Time
		for _, a := range acknowledged {
			at := slices.IndexFunc(q.Versions, func(v Version) bool { return v.Version == a.Version })
			if a.Consumer != name || at < 0 {
				continue
			}
			if taken := q.Versions[at].taken(a.AtUtc); first.IsZero() || taken.Before(first) {
				first = taken
			}
		}
		if first.IsZero() {
			missing = append(missing, name)
		}
		ready = later(ready, first)
	}
	return ready, missing, nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
