package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/consumers"
	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/engine/spn"
	"github.com/vibedata/roundhouse/engine/tls"
	"github.com/vibedata/roundhouse/handler/settings"
	"github.com/vibedata/roundhouse/services/certificates"
)

const (
	// rotationsSetting lists the scheduled rotations.
	rotationsSetting = "ROUNDHOUSE_ROTATIONS"
	// scheduleKind is the kind of correlation ids of scheduled rotations, with engine, target and slot.
	scheduleKind = "schedule"
)

// rotation is one target of a schedule.
type rotation struct {
	engine string
	// target is the normalized name of the rotated credential.
	target               string
	instanceID, tenantID string
	// consumers acknowledge new versions of it on their own.
	consumers []string
	// input returns the input of the engine's message for a slot.
	input func(slot string) any
}

// rotations are the targets of all schedules, by engine.
type rotations map[string][]rotation

// rotationsDocument is the value of ROUNDHOUSE_ROTATIONS. tenantId is the tenant of a rotation's event.
type rotationsDocument struct {
	HMAC []struct {
		InstanceID string   `json:"instanceId"`
		TenantID   string   `json:"tenantId"`
		Consumers  []string `json:"consumers"`
	} `json:"hmac"`
	SPN []struct {
		ApplicationID string   `json:"applicationId"`
		TenantID      string   `json:"tenantId"`
		Consumers     []string `json:"consumers"`
	} `json:"spn"`
	TLS []struct {
		Domains  []string             `json:"domains"`
		KeyType  certificates.KeyType `json:"keyType"`
		TenantID string               `json:"tenantId"`
	} `json:"tls"`
}

// slotInput is the input of engines that rotate once a slot.
type slotInput struct {
	ApplicationID string `json:"applicationId,omitempty"`
	Slot          string `json:"slot,omitempty"`
}

// rotationsFrom reads ROUNDHOUSE_ROTATIONS. Each target is checked as its engine will check it, so that a target that
// would be dead-lettered every day is refused at start.
func rotationsFrom(r *settings.Reader) rotations {
	var doc rotationsDocument
	if !r.JSON(rotationsSetting, &doc) {
		return nil
	}
	all, err := doc.rotations()
	if err != nil {
		r.Reject(rotationsSetting, err)
		return nil
	}
	return all
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
		add(rotation{engine: hmac.Engine, target: t.InstanceID, instanceID: t.InstanceID, tenantID: t.TenantID, consumers: t.Consumers,
			input: func(slot string) any { return slotInput{Slot: slot} }}, errors.Join(err, consumers.CheckNames(t.Consumers)))
	}
	for _, t := range doc.SPN {
		application, err := checkApplication(t.ApplicationID)
		add(rotation{engine: spn.Engine, target: application, tenantID: t.TenantID, consumers: t.Consumers,
			input: func(slot string) any { return slotInput{ApplicationID: application, Slot: slot} }}, errors.Join(err, consumers.CheckNames(t.Consumers)))
	}
	for _, t := range doc.TLS {
		domains, err := tls.Input{Domains: t.Domains, KeyType: t.KeyType}.Names()
		r := rotation{engine: tls.Engine, tenantID: t.TenantID, input: func(string) any { return tls.Input{Domains: domains, KeyType: t.KeyType} }}
		if err == nil {
			r.target = tls.CertificateName(domains)
		}
		add(r, err)
	}
	return all, errors.Join(errs...)
}

// checkApplication returns an application id in the form of the spn engine.
func checkApplication(id string) (string, error) {
	document, err := json.Marshal(slotInput{ApplicationID: id})
	if err != nil {
		return "", err
	}
	in, err := spn.ParseInput(spn.OperationRotate, document)
	return in.ApplicationID, err
}

// add refuses a duplicate target: its two messages would have one correlation id, and only one would run.
func (all rotations) add(r rotation) error {
	for _, other := range all[r.engine] {
		if other.target == r.target {
			return fmt.Errorf("%.80q is listed twice", r.target)
		}
	}
	all[r.engine] = append(all[r.engine], r)
	return nil
}

// tenantOf returns the tenant for which an instance's keys are rotated, and whether the instance is a target of the engine.
func (all rotations) tenantOf(engineName, instanceID string) (tenantID string, ok bool) {
	for _, r := range all[engineName] {
		if r.instanceID == instanceID {
			return r.tenantID, true
		}
	}
	return "", false
}

// schedule returns the schedule of an engine's rotations: each rotation is a schedule target. Without a slot, each
// message is a rotation of its own.
func (all rotations) schedule(name, cron string) engine.Schedule {
	s := engine.Schedule{Name: "schedule", Cron: cron}
	var items []engine.Item
	for _, r := range all[name] {
		items = append(items, engine.Item{Name: r.target, Message: func(at time.Time) (engine.Message, error) {
			slot := slotText(s, at)
			input, err := json.Marshal(r.input(slot))
			return engine.Message{CorrelationID: engine.ScheduleCorrelationID(scheduleKind, name, r.target, slot),
				InstanceID: r.instanceID, TenantID: r.tenantID, Input: input}, err
		}})
	}
	s.Items = engine.FixedItems(items...)
	return s
}

// slotText returns the text of a slot: the day for the engine's own times, which occur once a day, and the time for
// those of a setting, which may occur more often; "" for no slot.
func slotText(s engine.Schedule, at time.Time) string {
	switch {
	case at.IsZero():
		return ""
	case s.Occurs(at):
		return at.UTC().Format(time.DateOnly)
	default:
		return at.UTC().Format(time.RFC3339)
	}
}
