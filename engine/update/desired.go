package update

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/engine/release"
)

// Wanted is a version that somebody wants, and the run that noted it.
type Wanted struct {
	Version string `json:"version,omitempty"`
	// CorrelationID names the run, "" for a version that is older than these notes.
	CorrelationID string    `json:"correlationId,omitempty"`
	NotedAtUtc    time.Time `json:"notedAtUtc,omitzero"`
	// Ring is the ring of the release, if the message said so.
	Ring string `json:"ring,omitempty"`
	// Released is when the release was made, if the message said so.
	Released time.Time `json:"released,omitzero"`
}

// Desired is what an instance has to have: the release, and the versions of its components, by name, of which one may be newer
// than that of the release, because it was updated alone.
type Desired struct {
	Wanted
	Components map[string]Wanted `json:"components,omitempty"`
}

// DesiredOf reads from an instance's document what it has to have. Where nothing is noted yet, that is what it has.
func DesiredOf(i registry.Instance) (Desired, error) {
	var d Desired
	_, err := i.Field(fieldDesired, &d)
	if err == nil && d.Version == "" {
		d.Version, err = VersionOf(i)
	}
	return d, err
}

// newer says which wish stands against another: one that is known to be newer, of another run.
func (w Wanted) newer(than Wanted) *Wanted {
	mine, theirs := release.Version{Version: than.Version, Released: than.Released}, release.Version{Version: w.Version, Released: w.Released}
	if w.Version == "" || w.CorrelationID == than.CorrelationID || !mine.Older(theirs) {
		return nil
	}
	return &w
}

// wish is what the run wants: the release, or the one component.
func (in ProcessInput) wish(at time.Time) Wanted {
	w := Wanted{Version: in.Version, CorrelationID: in.correlationID(), NotedAtUtc: at.UTC().Truncate(time.Microsecond), Ring: in.Ring, Released: in.Released}
	if in.component() {
		w.Version = in.Components[0].Version
	}
	return w
}

// component says that the run updates one component, and not the instance.
func (in ProcessInput) component() bool { return in.Version == "" && len(in.Components) == 1 }

// correlationID is that of the run. It is in the name of the job; the inputs of runs that are under way hold it nowhere else.
func (in ProcessInput) correlationID() string {
	return strings.TrimPrefix(in.JobID, Engine+"-"+in.InstanceID+"/")
}

// against is the wish that the run must not go against, nil when there is none, or the run is to go back.
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

// note makes the wish of the run that of the instance. Noted again, it keeps its time.
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

// after is the wish that takes the place of another, or that one, when it is the same.
func (w Wanted) after(before Wanted) Wanted {
	if before.Version == w.Version && before.CorrelationID == w.CorrelationID {
		return before
	}
	return w
}

// want decides whether the run may go on, for the holder of the lock: it notes what the run wants, or gives the wish that stands
// against it, and then changes nothing.
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

// Look is what is known of an update before anybody is asked for it.
type Look struct {
	// SupersededBy is what is wanted instead, nil when the update may go on.
	SupersededBy *Wanted `json:"supersededBy,omitempty"`
	// Approval is what the ring needs, nil for nothing.
	Approval *ApprovalRequest `json:"approval,omitempty"`
	// Has is the version of the instance.
	Has string `json:"has,omitempty"`
}

// Look says what is known of an update before anybody is asked for it. It needs no lock and changes nothing: what it says is
// decided again by Process.
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
