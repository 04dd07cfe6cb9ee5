// Command handler is Roundhouse's own app: the custom handler of a platform's publisher and of its managed
// applications. ROUNDHOUSE_CONTEXT selects one of the two.
//
// It uses package handler like any other app, and none of its internals. It owns no storage keys itself; its engines
// do.
package main

import (
	"errors"
	"fmt"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/settings"
)

func main() {
	handler.Main(handler.App{Engines: engines})
}

// deployment is the profile that the program is deployed with; it selects the engines.
type deployment string

const (
	publisher  deployment = "publisher"
	managedApp deployment = "managed-app"
)

// contextSetting names the profile; publisher unless it is set.
const contextSetting = "ROUNDHOUSE_CONTEXT"

// build makes an engine of the platform.
type build func(p *handler.Platform) (engine.Definition, error)

// builds returns the engines of the profiles.
func builds() map[deployment][]build {
	return map[deployment][]build{
		publisher:  {hmacEngine, spnEngine, tlsEngine, provisioningEngine, updatePublisherEngine, alertsEngine},
		managedApp: {updateEngine, healthEngine, alertsEngine},
	}
}

// engines returns the engines of the current profile.
func engines(p *handler.Platform) ([]engine.Definition, error) {
	in := deployment(p.Settings.Text(contextSetting))
	if in == "" {
		in = publisher
	}
	chosen, ok := builds()[in]
	if !ok {
		p.Settings.Reject(contextSetting, fmt.Errorf("it is %.32q: set it to %s or %s", in, publisher, managedApp))
	}
	ownInstance(p, in)
	var all []engine.Definition
	var errs []error
	for _, build := range chosen {
		d, err := build(p)
		all, errs = append(all, d), append(errs, err)
	}
	return all, errors.Join(errs...)
}

// ownInstance sets the app's own document in the registry. A managed application that does not know its instance has
// none; the publisher's is always the same.
func ownInstance(p *handler.Platform, in deployment) {
	set := p.Settings.Text(settings.InstanceID)
	switch {
	case in == managedApp:
		p.InstanceID, p.WorksOnInstances = set, true
	case set != "" && set != engine.PublisherInstance:
		p.Settings.Reject(settings.InstanceID, fmt.Errorf("it is for managed applications: the publisher's own instance is called %s; leave it out", engine.PublisherInstance))
	}
}
