package updatepublisher

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/engine/release"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/outbox/receiver"
)

// LastUpdate is the last update of an instance in the registry: the report, without the instance.
type LastUpdate struct {
	Status        release.Status `json:"status"`
	Ring          string         `json:"ring,omitempty"`
	Wanted        string         `json:"wanted,omitempty"`
	SupersededBy  string         `json:"supersededBy,omitempty"`
	Reason        string         `json:"reason,omitempty"`
	CorrelationID string         `json:"correlationId"`
	FinishedAtUtc time.Time      `json:"finishedAtUtc"`
}

// Health is the health of an instance in the registry.
type Health struct {
	Status   string    `json:"status"`
	SinceUtc time.Time `json:"sinceUtc"`
}

// ReportInput is a managed application's report about an instance.
type ReportInput struct {
	InstanceID string            `json:"instanceId"`
	Finished   *release.Finished `json:"finished,omitempty"`
	Health     *release.Health   `json:"health,omitempty"`
	// Execution and Try distinguish the calls: the registry is read again each time.
	Execution int `json:"execution"`
	Try       int `json:"try,omitempty"`
}

// maxAhead bounds how far the clock of a managed application may be ahead.
const maxAhead = 10 * time.Minute

// at returns the time of the report.
func (in ReportInput) at() time.Time {
	if in.Finished != nil {
		return in.Finished.FinishedAtUtc
	}
	return in.Health.SinceUtc
}

// Reported is the outcome of a report.
type Reported struct {
	// Noted means that the registry has it; false is a report behind a newer one.
	Noted bool `json:"noted"`
	// LockedBy is the job that locks the instance until LockedUntil, "" for none.
	LockedBy    string    `json:"lockedBy,omitempty"`
	LockedUntil time.Time `json:"lockedUntil,omitzero"`
}

// Report records a report about an instance, unless the registry has a newer one. Repeating it changes nothing.
func (s *Steps) Report(ctx context.Context, in ReportInput) (Reported, error) {
	var out Reported
	if ahead := in.at().Sub(s.config.Now()); ahead > maxAhead {
		return Reported{}, fmt.Errorf("%w: the report of instance %s is %v ahead of the clock, and would stand against all that follow: set the clock of its application", ErrInput, in.InstanceID, ahead.Truncate(time.Second))
	}
	_, err := s.config.Registry.Update(ctx, in.InstanceID, "", func(i *registry.Instance) error {
		var err error
		if in.Finished != nil {
			out.Noted, err = noteUpdate(i, *in.Finished)
		} else {
			out.Noted, err = noteHealth(i, *in.Health)
		}
		return err
	})
	if locked, ok := errors.AsType[*registry.LockedError](err); ok {
		return Reported{LockedBy: locked.Holder, LockedUntil: locked.Until}, nil
	}
	if err != nil {
		return Reported{}, fmt.Errorf("note the report of instance %s: %w", in.InstanceID, err)
	}
	return out, nil
}

func noteUpdate(i *registry.Instance, f release.Finished) (bool, error) {
	var last LastUpdate
	if _, err := i.Field(fieldLastUpdate, &last); err != nil {
		return false, fmt.Errorf("%w: %w", registry.ErrDamaged, err)
	}
	if last.FinishedAtUtc.After(f.FinishedAtUtc) {
		return false, nil
	}
	err := i.SetField(fieldLastUpdate, LastUpdate{Status: f.Status, Ring: f.Ring, Wanted: f.Wanted, SupersededBy: f.SupersededBy, Reason: f.Reason,
		CorrelationID: f.CorrelationID, FinishedAtUtc: f.FinishedAtUtc})
	if err == nil && f.Version != "" {
		err = i.SetField(fieldVersion, f.Version)
	}
	return true, err
}

func noteHealth(i *registry.Instance, h release.Health) (bool, error) {
	var last Health
	if _, err := i.Field(fieldHealth, &last); err != nil {
		return false, fmt.Errorf("%w: %w", registry.ErrDamaged, err)
	}
	if last.SinceUtc.After(h.SinceUtc) {
		return false, nil
	}
	return true, i.SetField(fieldHealth, Health{Status: h.Status, SinceUtc: h.SinceUtc})
}

// The pauses between checks of a locked instance, which double; they end when the lock does.
const (
	firstPause   = 30 * time.Second
	longestPause = 5 * time.Minute
)

// note records a report as soon as the instance is not locked.
func (t teller) note(ctx *orchestrator.Context, r engine.Request[Input]) (bool, error) {
	if err := validateReport(r); err != nil {
		return false, orchestrator.Permanent(err)
	}
	in := ReportInput{InstanceID: r.InstanceID, Finished: r.Input.Finished, Health: r.Input.Health, Execution: ctx.Execution()}
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		out, err := t.report.Call(ctx, in).Await()
		if err != nil || out.LockedBy == "" {
			return out.Noted, err
		}
		ctx.Logger().Info("the instance is locked: its report waits", "instanceId", r.InstanceID, "holder", out.LockedBy, "until", out.LockedUntil)
		if err := ctx.Sleep(min(pause, max(time.Second, out.LockedUntil.Sub(ctx.Now())))); err != nil {
			return false, err
		}
		in.Try++
	}
}

// maxText bounds the texts of a report, in bytes.
const maxText = 1024

// validateReport checks a report: it is external data.
func validateReport(r engine.Request[Input]) error {
	f, h := r.Input.Finished, r.Input.Health
	switch {
	case r.InstanceID == "" || r.InstanceID == engine.PublisherInstance || (f == nil) == (h == nil):
		return fmt.Errorf("%w: a report is of one instance, and says how an update ended or how the instance is", ErrInput)
	case f != nil:
		return validateFinished(r.InstanceID, *f)
	case h.InstanceID != r.InstanceID || !word.MatchString(h.Status) || h.SinceUtc.IsZero():
		return fmt.Errorf("%w: the report of the health %.64q of instance %.128q needs its status, and since when", ErrInput, h.Status, h.InstanceID)
	}
	return nil
}

func validateFinished(instanceID string, f release.Finished) error {
	for _, version := range []string{cmp.Or(f.Wanted, "-"), cmp.Or(f.Version, "-"), cmp.Or(f.SupersededBy, "-"), cmp.Or(f.Ring, "-")} {
		if version != "-" && !word.MatchString(version) {
			return fmt.Errorf("%w: the report of an update of instance %.128q names a version or a ring %.80q", ErrInput, instanceID, version)
		}
	}
	if f.InstanceID != instanceID || !word.MatchString(string(f.Status)) || f.FinishedAtUtc.IsZero() || max(len(f.Reason), len(f.CorrelationID)) > maxText {
		return fmt.Errorf("%w: the report of an update of instance %.128q needs its status and its time, and texts of at most %d bytes", ErrInput, f.InstanceID, maxText)
	}
	return nil
}

// AdaptReport converts an event of a managed application to a message; ok is false for other events. The correlation
// id is derived from the instance and the event's id: an event that is delivered twice is one message, and a sender
// cannot use another sender's id.
func AdaptReport(body []byte) (m engine.Message, ok bool, err error) {
	e, err := receiver.Parse(body)
	if err != nil {
		return engine.Message{}, false, err
	}
	var in Input
	switch e.Type {
	case release.EventFinished:
		err = json.Unmarshal(e.Data, &in.Finished)
	case release.EventHealth:
		err = json.Unmarshal(e.Data, &in.Health)
	default:
		return engine.Message{}, false, nil
	}
	if err != nil {
		return engine.Message{}, true, fmt.Errorf("%w: %w", ErrInput, err)
	}
	m = engine.Message{Engine: Engine, Operation: OperationReport}
	switch {
	case in.Finished != nil:
		m.InstanceID = in.Finished.InstanceID
	case in.Health != nil:
		m.InstanceID = in.Health.InstanceID
	}
	m.CorrelationID = engine.DeriveCorrelationID("report", m.InstanceID, e.ID)
	if m.Input, err = json.Marshal(in); err != nil {
		return engine.Message{}, true, err
	}
	return m, true, validateReport(engine.Request[Input]{InstanceID: m.InstanceID, Input: in})
}
