package update

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/engine/release"
)

// Wanted is a wanted version, and the run that recorded it.
type Wanted struct {
	Version string `json:"version,omitempty"`
	// CorrelationID names the run, "" for a version from before these records.
	CorrelationID string    `json:"correlationId,omitempty"`
	NotedAtUtc    time.Time `json:"notedAtUtc,omitzero"`
	// Ring is the ring of the release, if the message has it.
	Ring string `json:"ring,omitempty"`
	// Released is when the release was made, if the message has it.
	Released time.Time `json:"released,omitzero"`
}

// Desired is the desired state of an instance: the release, and the versions of its components, by name. A component
// may be newer than the release, because it was updated alone.
type Desired struct {
	Wanted
	Components map[string]Wanted `json:"components,omitempty"`
}

// DesiredOf reads the desired state from an instance's document. Without a record, it is the current state.
func DesiredOf(i registry.Instance) (Desired, error) {
	var d Desired
	_, err := i.Field(fieldDesired, &d)
	if err == nil && d.Version == "" {
		d.Version, err = VersionOf(i)
	}
	return d, err
}

// newer returns the wish that conflicts with another: one of another run that is known to be newer.
func (w Wanted) newer(than Wanted) *Wanted {
	mine, theirs := release.Version{Version: than.Version, Released: than.Released}, release.Version{Version: w.Version, Released: w.Released}
	if w.Version == "" || w.CorrelationID == than.CorrelationID || !mine.Older(theirs) {
		return nil
	}
	return &w
}

// wish returns the version that the run wants: the release, or the one component.
func (in ProcessInput) wish(at time.Time) Wanted {
	w := Wanted{Version: in.Version, CorrelationID: in.correlationID(), NotedAtUtc: at.UTC().Truncate(time.Microsecond), Ring: in.Ring, Released: in.Released}
	if in.component() {
		w.Version = in.Components[0].Version
	}
	return w
}

// component reports whether the run updates one component, and not the instance.
func (in ProcessInput) component() bool { return in.Version == "" && len(in.Components) == 1 }

// correlationID returns that of the run, from the name of the job: the inputs of runs in progress hold it nowhere
// else.
func (in ProcessInput) correlationID() string {
	return strings.TrimPrefix(in.JobID, Engine+"-"+in.InstanceID+"/")
}

// against returns the newer wish that stops the run, nil for none, or for a downgrade.
func (in ProcessInput) against(d Desired) *Wanted {
	switch {
	case in.Downgrade:
		return nil
	case in.component():
		return d.Components[in.Components[0].Name].newer(in.wish(time.Time{}))
	default:
		return d.newer(in.wish(time.Time{}))
	}
}

// note records the wish of the run for the instance. A repeated record keeps its time.
func (d *Desired) note(in ProcessInput, at time.Time) {
	if d.Components == nil {
		d.Components = map[string]Wanted{}
	}
	wish := in.wish(at)
	if !in.component() {
		d.Wanted = wish.after(d.Wanted)
	}
	for _, c := range in.Components {
		wish.Version = c.Version
		d.Components[c.Name] = wish.after(d.Components[c.Name])
	}
}

// after returns the wish that replaces another, or that one if it is the same.
func (w Wanted) after(before Wanted) Wanted {
	if before.Version == w.Version && before.CorrelationID == w.CorrelationID {
		return before
	}
	return w
}

// want decides whether the run may continue, for the holder of the lock: it records the wish of the run, or returns a newer
// wish and changes nothing.
func (s *Steps) want(ctx context.Context, in ProcessInput) (against *Wanted, has string, err error) {
	_, err = s.config.Registry.Update(ctx, in.InstanceID, in.JobID, func(i *registry.Instance) error {
		d, err := DesiredOf(*i)
		if err != nil {
			return fmt.Errorf("%w: %w", registry.ErrDamaged, err)
		}
		if has, err = VersionOf(*i); err != nil {
			return fmt.Errorf("%w: %w", registry.ErrDamaged, err)
		}
		if against = in.against(d); against != nil {
			return nil
		}
		d.note(in, s.config.Now())
		return i.SetField(fieldDesired, d)
	})
	return against, has, err
}

// Look is the state of an update before its approval.
type Look struct {
	// SupersededBy is the newer wanted version, nil when the update may continue.
	SupersededBy *Wanted `json:"supersededBy,omitempty"`
	// Approval is the approval that the ring requires, nil for none.
	Approval *ApprovalRequest `json:"approval,omitempty"`
	// Has is the version of the instance.
	Has string `json:"has,omitempty"`
}

// Look returns the state of an update before its approval. It needs no lock and changes nothing: Process decides
// again.
func (s *Steps) Look(ctx context.Context, in ProcessInput) (Look, error) {
	i, err := s.config.Registry.Get(ctx, in.InstanceID)
	if err != nil {
		return Look{}, fmt.Errorf("look at what is wanted: %w", err)
	}
	d, err := DesiredOf(i)
	if err != nil {
		return Look{}, fmt.Errorf("look at what is wanted: %w: %w", registry.ErrDamaged, err)
	}
	out := Look{SupersededBy: in.against(d)}
	if out.Has, err = VersionOf(i); err != nil {
		return Look{}, fmt.Errorf("look at what is wanted: %w: %w", registry.ErrDamaged, err)
	}
	if a, ok := s.config.Approvals[in.Ring]; ok && in.Ring != "" {
		out.Approval = &a
	}
	return out, nil
}
