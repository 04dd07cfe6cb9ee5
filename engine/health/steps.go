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
	// maxMessage bounds the stored message of a component, in bytes.
	maxMessage = 256
)

// word matches valid names of components: they become parts of paths.
var word = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$`)

// ListInput names the instance to check.
type ListInput struct {
	InstanceID string `json:"instanceId"`
	// Slot is when the check was due; the zero time always checks.
	Slot time.Time `json:"slot,omitzero"`
	// Execution distinguishes the calls of an execution: results of a failed one are out of date.
	Execution int `json:"execution"`
}

// List lists the components to check.
type List struct {
	// Superseded means that the check of another slot has begun after this slot, and nothing is left to do.
	Superseded bool     `json:"superseded,omitempty"`
	Components []string `json:"components,omitempty"`
}

// List returns the components to check.
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

// CheckInput names the component to check.
type CheckInput struct {
	InstanceID string `json:"instanceId"`
	Component  string `json:"component"`
	// Execution is that of ListInput.
	Execution int `json:"execution"`
}

// Finding is the result of a component's check.
type Finding struct {
	Component string `json:"component"`
	Report
	// Sent describes the authentication of the request, nil when the client does not record it.
	Sent *outbound.Sent `json:"sent,omitempty"`
}

// Check asks one component for its health. An error means that it gave no answer.
func (s *Steps) Check(ctx context.Context, in CheckInput) (Finding, error) {
	ctx, last := outbound.Record(ctx)
	r, err := s.config.Checker.Check(ctx, in.InstanceID, in.Component)
	if err != nil {
		return Finding{}, fmt.Errorf("check component %s: %w", in.Component, err)
	}
	r.Message = brief(r.Message)
	return Finding{Component: in.Component, Report: r, Sent: last()}, nil
}

// brief returns a bounded, clean form of an external text.
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

// AggregateInput is the result of a run's checks.
type AggregateInput struct {
	InstanceID string `json:"instanceId"`
	// JobID is the holder of the registry's lock.
	JobID string `json:"jobId"`
	// CheckedAt is when the check began.
	CheckedAt time.Time `json:"checkedAt"`
	Findings  []Finding `json:"findings"`
	// Scheduled means that the check was that of a slot.
	Scheduled bool `json:"scheduled,omitempty"`
	// Execution is that of ListInput.
	Execution int `json:"execution"`
}

// AggregateOutput is the health of an instance.
type AggregateOutput struct {
	// Status is the status of the worst component.
	Status Status `json:"status"`
	// Healthy, Degraded and Unhealthy count the components.
	Healthy   int `json:"healthy"`
	Degraded  int `json:"degraded"`
	Unhealthy int `json:"unhealthy"`
	// Change is when the instance got its status, while that is unpublished; the zero time otherwise.
	Change time.Time `json:"change,omitzero"`
}

// Aggregate writes the findings to the registry, for the holder of its lock; a *registry.LockedError means that the
// job does not hold it. Newer results in the registry stay.
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

// ToldInput names a published change.
type ToldInput struct {
	InstanceID string `json:"instanceId"`
	// JobID is the holder of the registry's lock.
	JobID string `json:"jobId"`
	// Change is that of AggregateOutput.
	Change time.Time `json:"change"`
	// Execution is that of ListInput.
	Execution int `json:"execution"`
}

// Told records in the registry that a change was published. Repeating it changes nothing.
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

// permanently marks errors of a step that a repeat cannot fix.
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
