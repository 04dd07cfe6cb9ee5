package updatepublisher

import (
	"context"
	"errors"
	"fmt"

	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/engine/release"
	"github.com/vibedata/roundhouse/orchestrator"
)

// EvaluateInput names the page of the registry to evaluate.
type EvaluateInput struct {
	// From is the Next of the previous page, "" for the first.
	From string `json:"from,omitempty"`
	// Execution distinguishes the calls of an execution: results of a failed one are out of date.
	Execution int `json:"execution"`
}

// Evaluated is the result of a page.
type Evaluated struct {
	// Instances is the number of instances, and Due those that need the version of their ring.
	Instances int      `json:"instances"`
	Due       []string `json:"due,omitempty"`
	// Unreadable are those with invalid documents. They are skipped, so that they do not stop the others.
	Unreadable []string `json:"unreadable,omitempty"`
	// UnknownRings counts, by ring, the instances of rings without a release: they are not notified. It is empty
	// while no ring has one.
	UnknownRings map[string]int `json:"unknownRings,omitempty"`
	// Next is the next page, "" for none.
	Next string `json:"next,omitempty"`
}

// Evaluate finds the instances of a page of the registry that need the version of their ring.
func (s *Steps) Evaluate(ctx context.Context, in EvaluateInput) (Evaluated, error) {
	page, err := s.config.Registry.List(ctx, s.config.Page, in.From)
	if err != nil {
		return Evaluated{}, fmt.Errorf("evaluate: %w", err)
	}
	out := Evaluated{Instances: len(page.Instances), Next: page.Next}
	for _, i := range page.Instances {
		switch at, told, err := s.look(i); {
		case err != nil:
			out.Unreadable = append(out.Unreadable, i.InstanceID)
		case told && at.due():
			out.Due = append(out.Due, i.InstanceID)
		case told && !at.known && len(s.config.Releases) > 0:
			out.UnknownRings = count(out.UnknownRings, at.ring, 1)
		}
	}
	return out, nil
}

// NotifyInput names the instances to notify.
type NotifyInput struct {
	Instances []string `json:"instances"`
	// Execution is that of EvaluateInput.
	Execution int `json:"execution"`
}

// Notified lists the notices of the instances.
type Notified struct {
	Notices []release.Notice `json:"notices,omitempty"`
}

// maxRings bounds the rings that are counted by name; the others are counted together.
const maxRings = 50

// otherRings is the common name of rings beyond maxRings.
const otherRings = "..."

func count(rings map[string]int, ring string, n int) map[string]int {
	if rings == nil {
		rings = map[string]int{}
	}
	if _, there := rings[ring]; !there && len(rings) >= maxRings {
		ring = otherRings
	}
	rings[ring] += n
	return rings
}

// Notify makes the notices for instances, from the current registry: an instance that is removed, or has its version,
// is skipped.
func (s *Steps) Notify(ctx context.Context, in NotifyInput) (Notified, error) {
	var out Notified
	for _, id := range in.Instances {
		i, err := s.config.Registry.Get(ctx, id)
		if errors.Is(err, registry.ErrNotFound) {
			continue
		}
		if err != nil {
			return Notified{}, fmt.Errorf("notify: %w", err)
		}
		at, told, err := s.look(i)
		if err != nil {
			return Notified{}, fmt.Errorf("notify instance %s: %w: %w", id, registry.ErrDamaged, err)
		}
		if told && at.due() {
			out.Notices = append(out.Notices, release.Notice{InstanceID: id, TenantID: i.TenantID, Ring: at.ring, Version: at.wants.Version,
				Released: at.wants.Released, Components: at.wants.Components})
		}
	}
	return out, nil
}

// permanently marks the errors of a step that a repeat cannot fix.
func permanently[In, Out any](step func(context.Context, In) (Out, error)) func(context.Context, In) (Out, error) {
	return func(ctx context.Context, in In) (Out, error) {
		out, err := step(ctx, in)
		for _, hopeless := range []error{ErrInput, registry.ErrInvalid, registry.ErrDamaged, registry.ErrNotFound} {
			if errors.Is(err, hopeless) {
				return out, orchestrator.Permanent(err)
			}
		}
		return out, err
	}
}
