package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/engine/update"
	"github.com/vibedata/roundhouse/engine/updatepublisher"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/intake"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/outbox/receiver"
	"github.com/vibedata/roundhouse/services/outbound"
)

// The settings that name the keys with which the sender signs its events.
const (
	updateKeysSetting = "ROUNDHOUSE_UPDATE_INTAKE_KEYS"
	reportKeysSetting = "ROUNDHOUSE_REPORT_INTAKE_KEYS"
)

// updateIntake accepts the publisher's notices of releases. A notice for an unregistered instance was sent to the
// wrong app, which the publisher has to know.
func updateIntake(p *handler.Platform) engine.Intake {
	return eventIntake(p, updateKeysSetting, engine.Intake{Function: "update-intake", Route: "updates", Adapt: update.AdaptNotice}, func(ctx context.Context, e receiver.Event) error {
		id := instanceOf(e)
		_, err := p.Registry.Get(ctx, id)
		if errors.Is(err, registry.ErrNotFound) || errors.Is(err, registry.ErrInvalid) {
			return fmt.Errorf("%w: instance %.128q is not registered with this application: register it there, or correct the address of its events", engine.ErrNotTaken, id)
		}
		return err
	})
}

// reportIntake accepts managed applications' reports about their instances. A report about an unregistered instance
// becomes a dead letter, since the instance has to be registered here.
func reportIntake(p *handler.Platform) engine.Intake {
	return eventIntake(p, reportKeysSetting, engine.Intake{Function: "report-intake", Route: "reports", Adapt: updatepublisher.AdaptReport}, nil)
}

// eventIntake returns an intake of events that another app's outbox has signed with a key of the setting. It is
// closed without keys.
func eventIntake(p *handler.Platform, setting string, i engine.Intake, known func(context.Context, receiver.Event) error) engine.Intake {
	var auth outbound.Auth
	p.Settings.JSON(setting, &auth.SigningKeys)
	if err := auth.ValidateFor(); err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			p.Settings.Reject(setting, errors.New(line))
		}
	}
	keys := p.Outbound.InstanceKeys(auth)
	i.Closed = len(auth.SigningKeys) == 0
	i.Verify = intake.Signed(receiver.Receiver{Keys: func(ctx context.Context, e receiver.Event) ([]outbox.SigningKey, error) {
		// The registry is read before the vault, so that a stranger cannot cause vault requests for invented
		// instances.
		id := instanceOf(e)
		if _, err := p.Registry.Get(ctx, id); errors.Is(err, registry.ErrNotFound) || errors.Is(err, registry.ErrInvalid) {
			id = ""
		} else if err != nil {
			return nil, err
		}
		found, err := keys.Of(ctx, id)
		if outbound.Absent(err) {
			return nil, nil // answer as for an unregistered instance, so the answer does not reveal which ones are registered
		}
		return found, err
	}}, known)
	return i
}

// instanceOf returns the instance of an event, "" for none.
func instanceOf(e receiver.Event) string {
	var about struct {
		InstanceID string `json:"instanceId"`
	}
	_ = json.Unmarshal(e.Data, &about) // a body that is no object names no instance
	return about.InstanceID
}
