package health

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/services/outbound"
)

const (
	// maxComponents bounds the components of an instance, and so its document in the registry.
	maxComponents = 200
	// maxMessage bounds what is kept of a component's message, in bytes.
	maxMessage = 256
)

// word is what names of components may be: they become parts of paths.
var word = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$`)

// ListInput says whose components are to be checked.
type ListInput struct {
	InstanceID string `json:"instanceId"`
	// Slot is when the check was due; the zero time asks for a check in any case.
	Slot time.Time `json:"slot,omitzero"`
	// Execution sets the calls of an execution apart: what one that failed has seen is out of date.
	Execution int `json:"execution"`
}

// List is what there is to check.
type List struct {
	// Superseded says that the check of another slot has begun after this slot already, and that there is nothing to do.
	Superseded bool     `json:"superseded,omitempty"`
	Components []string `json:"components,omitempty"`
}

// List finds out which components there are to check.
func (s *Steps) List(ctx context.Context, in ListInput) (List, error) {
	i, err := s.config.Registry.Get(ctx, in.InstanceID)
	if err != nil {
		return List{}, err
	}
	last, _, err := SummaryOf(i)
	if err != nil {
		return List{}, fmt.Errorf("%w: %w", registry.ErrDamaged, err)
	}
	if !in.Slot.IsZero() && last.ScheduledAtUtc.After(in.Slot) {
		return List{Superseded: true}, nil
	}
	names, err := s.config.Checker.Components(ctx, in.InstanceID)
	if err != nil {
		return List{}, fmt.Errorf("list the components of instance %s: %w", in.InstanceID, err)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) > maxComponents {
		return List{}, fmt.Errorf("%w: instance %s has %d components, %d can be checked", ErrRefused, in.InstanceID, len(names), maxComponents)
	}
	for _, name := range names {
		if !word.MatchString(name) {
			return List{}, fmt.Errorf("%w: instance %s has a component that is called %.80q", ErrRefused, in.InstanceID, name)
		}
	}
	return List{Components: names}, nil
}

// CheckInput says which component to check.
type CheckInput struct {
	InstanceID string `json:"instanceId"`
	Component  string `json:"component"`
	// Execution is that of ListInput.
	Execution int `json:"execution"`
}

// Finding is what a check of a component found.
type Finding struct {
	Component string `json:"component"`
	Report
	// Sent is how the request said who asks, nil when the client does not record it.
	Sent *outbound.Sent `json:"sent,omitempty"`
}

// Check asks one component how it is. An error says that it gave no answer.
func (s *Steps) Check(ctx context.Context, in CheckInput) (Finding, error) {
	ctx, last := outbound.Record(ctx)
	r, err := s.config.Checker.Check(ctx, in.InstanceID, in.Component)
	if err != nil {
		return Finding{}, fmt.Errorf("check component %s: %w", in.Component, err)
	}
	r.Message = brief(r.Message)
	return Finding{Component: in.Component, Report: r, Sent: last()}, nil
}

// brief is what is kept of a text that comes from outside.
func brief(text string) string {
	text = engine.Redact(text)
	if len(text) <= maxMessage {
		return text
	}
	at := maxMessage
	for at > 0 && text[at]&0xC0 == 0x80 { // not in the middle of a character
		at--
	}
	return text[:at] + "..."
}

// AggregateInput is what a run has found.
type AggregateInput struct {
	InstanceID string `json:"instanceId"`
	// JobID is who holds the registry's lock.
	JobID string `json:"jobId"`
	// CheckedAt is when the check began.
	CheckedAt time.Time `json:"checkedAt"`
	Findings  []Finding `json:"findings"`
	// Scheduled says that the check was that of a slot.
	Scheduled bool `json:"scheduled,omitempty"`
	// Execution is that of ListInput.
	Execution int `json:"execution"`
}

// AggregateOutput is the health of an instance.
type AggregateOutput struct {
	// Status is that of the component that is worst.
	Status Status `json:"status"`
	// Healthy, Degraded and Unhealthy count the components.
	Healthy   int `json:"healthy"`
	Degraded  int `json:"degraded"`
	Unhealthy int `json:"unhealthy"`
	// Change is when the instance became what it is, while that is still to be published; the zero time otherwise.
	Change time.Time `json:"change,omitzero"`
}

// Aggregate writes what was found into the registry, for the holder of its lock; a *registry.LockedError says that the job
// is not. What is newer there stays.
func (s *Steps) Aggregate(ctx context.Context, in AggregateInput) (AggregateOutput, error) {
	out := AggregateOutput{Status: Healthy}
	for _, f := range in.Findings {
		switch f.Status {
		case Healthy:
			out.Healthy++
		case Degraded:
			out.Degraded++
		default:
			out.Unhealthy++
		}
		if f.Status.severity() > out.Status.severity() {
			out.Status = f.Status
		}
	}
	at := in.CheckedAt.UTC().Truncate(time.Microsecond)
	_, err := s.config.Registry.Update(ctx, in.InstanceID, in.JobID, func(i *registry.Instance) error {
		before, _, err := SummaryOf(*i)
		if err != nil {
			return fmt.Errorf("%w: %w", registry.ErrDamaged, err)
		}
		out.Change = time.Time{}
		if before.CheckedAtUtc.After(at) {
			return nil
		}
		now := summarize(before, in.Findings, out.Status, at)
		if now.Untold {
			out.Change = now.SinceUtc
		}
		if in.Scheduled {
			now.ScheduledAtUtc = at
		}
		return i.SetField(fieldHealth, now)
	})
	if err != nil {
		return AggregateOutput{}, fmt.Errorf("note the health of instance %s: %w", in.InstanceID, err)
	}
	return out, nil
}

func summarize(before Summary, findings []Finding, status Status, at time.Time) Summary {
	now := Summary{Status: status, SinceUtc: at, Untold: true, CheckedAtUtc: at, ScheduledAtUtc: before.ScheduledAtUtc, Components: map[string]Component{}}
	if before.Status == status && !before.SinceUtc.IsZero() { // a summary without it was written before changes were published
		now.SinceUtc, now.Untold = before.SinceUtc, before.Untold
	}
	for _, f := range findings {
		c := Component{Report: f.Report, SinceUtc: at}
		if was, ok := before.Components[f.Component]; ok && was.Status == f.Status {
			c.SinceUtc = was.SinceUtc
		}
		now.Components[f.Component] = c
	}
	return now
}

// ToldInput says which change was published.
type ToldInput struct {
	InstanceID string `json:"instanceId"`
	// JobID is who holds the registry's lock.
	JobID string `json:"jobId"`
	// Change is that of AggregateOutput.
	Change time.Time `json:"change"`
	// Execution is that of ListInput.
	Execution int `json:"execution"`
}

// Told notes in the registry that a change was published. Repeating it changes nothing.
func (s *Steps) Told(ctx context.Context, in ToldInput) (struct{}, error) {
	_, err := s.config.Registry.Update(ctx, in.InstanceID, in.JobID, func(i *registry.Instance) error {
		now, _, err := SummaryOf(*i)
		if err != nil {
			return fmt.Errorf("%w: %w", registry.ErrDamaged, err)
		}
		if !now.SinceUtc.Equal(in.Change) {
			return nil
		}
		now.Untold = false
		return i.SetField(fieldHealth, now)
	})
	if err != nil {
		return struct{}{}, fmt.Errorf("note that the health of instance %s was published: %w", in.InstanceID, err)
	}
	return struct{}{}, nil
}

// permanently marks the errors of a step that repeating it cannot mend.
func permanently[In, Out any](step func(context.Context, In) (Out, error)) func(context.Context, In) (Out, error) {
	return func(ctx context.Context, in In) (Out, error) {
		out, err := step(ctx, in)
		for _, hopeless := range []error{ErrInput, ErrRefused, registry.ErrInvalid, registry.ErrDamaged, registry.ErrNotFound} {
			if errors.Is(err, hopeless) {
				return out, orchestrator.Permanent(err)
			}
		}
		return out, err
	}
}
