package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/engine/spn"
	"github.com/vibedata/roundhouse/engine/tls"
	"github.com/vibedata/roundhouse/handler/trigger"
	"github.com/vibedata/roundhouse/queues"
)

const (
	// rotationsSetting names what is rotated on schedule.
	rotationsSetting = "ROUNDHOUSE_ROTATIONS"
	// scheduleKind is what correlation ids of scheduled rotations are derived of: engine, target and slot.
	scheduleKind = "schedule"
	// slotForm is how a slot is written: a tick stands for a day, UTC.
	slotForm = time.DateOnly
)

// rotation is one target of a schedule.
type rotation struct {
	engine string
	// target is what is rotated, in the form in which it is one and the same thing.
	target               string
	instanceID, tenantID string
	// input is that of the engine's message for a slot.
	input func(slot string) any
}

// rotations are the targets of all schedules, by engine.
type rotations map[string][]rotation

// rotationsDocument is ROUNDHOUSE_ROTATIONS as it is written. tenantId says whose event a rotation is.
type rotationsDocument struct {
	HMAC []struct {
		InstanceID string `json:"instanceId"`
		TenantID   string `json:"tenantId"`
	} `json:"hmac"`
	SPN []struct {
		ApplicationID string `json:"applicationId"`
		TenantID      string `json:"tenantId"`
	} `json:"spn"`
	TLS []struct {
		Domains  []string `json:"domains"`
		TenantID string   `json:"tenantId"`
	} `json:"tls"`
}

// slotInput is the input of engines that rotate once a slot.
type slotInput struct {
	ApplicationID string `json:"applicationId,omitempty"`
	Slot          string `json:"slot"`
}

// rotationsFrom reads ROUNDHOUSE_ROTATIONS. Each target is checked as its engine will, so that what could only become a
// dead letter, day after day, is refused at start.
func rotationsFrom(lookup lookupFunc) (rotations, error) {
	text := setting(lookup, rotationsSetting)
	if text == "" {
		return nil, nil
	}
	var doc rotationsDocument
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(&doc)
	if _, end := d.Token(); err == nil && !errors.Is(end, io.EOF) {
		err = errors.New("there is something behind the JSON value")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: set a JSON object as docs/settings.md describes: %w", rotationsSetting, err)
	}
	all, err := doc.rotations()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", rotationsSetting, err)
	}
	return all, nil
}

func (doc rotationsDocument) rotations() (rotations, error) {
	all := rotations{}
	var errs []error
	add := func(r rotation, err error) {
		if err == nil {
			err = all.add(r)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("target %d of %s: %w", len(all[r.engine])+1, r.engine, err))
		}
	}
	for _, t := range doc.HMAC {
		_, err := hmac.ParseInput(hmac.OperationRotate, t.InstanceID, nil)
		add(rotation{engine: hmac.Engine, target: t.InstanceID, instanceID: t.InstanceID, tenantID: t.TenantID,
			input: func(slot string) any { return slotInput{Slot: slot} }}, err)
	}
	for _, t := range doc.SPN {
		application, err := checkApplication(t.ApplicationID)
		add(rotation{engine: spn.Engine, target: application, tenantID: t.TenantID,
			input: func(slot string) any { return slotInput{ApplicationID: application, Slot: slot} }}, err)
	}
	for _, t := range doc.TLS {
		domains, err := tls.Input{Domains: t.Domains}.Names()
		r := rotation{engine: tls.Engine, tenantID: t.TenantID, input: func(string) any { return tls.Input{Domains: domains} }}
		if err == nil {
			r.target = tls.CertificateName(domains)
		}
		add(r, err)
	}
	return all, errors.Join(errs...)
}

// checkApplication gives an application id in the form that the spn engine uses.
func checkApplication(id string) (string, error) {
	document, err := json.Marshal(slotInput{ApplicationID: id})
	if err != nil {
		return "", err
	}
	in, err := spn.ParseInput(spn.OperationRotate, document)
	return in.ApplicationID, err
}

// add refuses a target that is there already: its two messages would have one correlation id, and only one would run.
func (all rotations) add(r rotation) error {
	for _, other := range all[r.engine] {
		if other.target == r.target {
			return fmt.Errorf("%.80q is listed twice", r.target)
		}
	}
	all[r.engine] = append(all[r.engine], r)
	return nil
}

// schedule is the timer function that asks an engine for its rotations, one message a target and tick.
//
// The host does not repeat a tick that failed, but it may repeat one that it lost track of, and by hand anybody can. The
// correlation ids of a slot are always the same, so a repeated tick sends what is missing and the engine drops the rest.
type schedule struct {
	engine, queue string
	targets       []rotation
	queues        queues.Store
	log           *slog.Logger
	now           func() time.Time
}

// schedules are the timer functions of the rotations, by name: those of the engines that there are.
func schedules(all rotations, definitions []engine.Definition, messages queues.Store, log *slog.Logger) map[string]trigger.Timer {
	timers := map[string]trigger.Timer{}
	for _, d := range definitions {
		switch d.Name {
		case hmac.Engine, spn.Engine, tls.Engine:
			s := schedule{engine: d.Name, queue: d.Queue, targets: all[d.Name], queues: messages, log: log, now: time.Now}
			timers[d.Name+"-schedule-timer"] = trigger.Timer{Parameter: timerParameter, Handle: s.handle}
		}
	}
	return timers
}

// handle sends the messages of a tick. What cannot be sent does not keep the others from it.
func (s schedule) handle(ctx context.Context, d trigger.TimerDelivery) error {
	slot, sent := s.slot(d), 0
	var errs []error
	for _, r := range s.targets {
		if ctx.Err() != nil {
			errs = append(errs, fmt.Errorf("%d targets of %s have no turn: %w", len(s.targets)-sent-len(errs), s.engine, context.Cause(ctx)))
			break
		}
		if err := s.send(ctx, r, slot); err != nil {
			errs = append(errs, err)
			continue
		}
		sent++
	}
	s.log.InfoContext(ctx, "rotations scheduled", "engine", s.engine, "slot", slot, "sent", sent, "targets", len(s.targets))
	return errors.Join(errs...)
}

func (s schedule) send(ctx context.Context, r rotation, slot string) error {
	input, err := json.Marshal(r.input(slot))
	if err != nil {
		return fmt.Errorf("schedule %s of %.80q: %w", s.engine, r.target, err)
	}
	body, err := json.Marshal(engine.Message{CorrelationID: engine.DeriveCorrelationID(scheduleKind, s.engine, r.target, slot),
		Engine: s.engine, InstanceID: r.instanceID, TenantID: r.tenantID, Input: input})
	if err != nil {
		return fmt.Errorf("schedule %s of %.80q: %w", s.engine, r.target, err)
	}
	if _, err := s.queues.Send(ctx, s.queue, body, 0); err != nil {
		return fmt.Errorf("schedule %s of %.80q: %w", s.engine, r.target, err)
	}
	return nil
}

// slot is the day that a tick stands for: that of its occurrence, however late it comes. A run by hand has the next
// occurrence in it, which is still to come, and stands for the day on which it is made.
func (s schedule) slot(d trigger.TimerDelivery) string {
	at := d.FiredAt
	if at.IsZero() {
		at = s.now()
	}
	if !d.ScheduledAt.IsZero() && d.ScheduledAt.Before(at) {
		at = d.ScheduledAt
	}
	return at.UTC().Format(slotForm)
}
