// Command handler is Roundhouse's own app: the custom handler of a platform's publisher and of its managed applications. Which
// of the two it is, ROUNDHOUSE_CONTEXT says.
//
// It uses package handler as any other app does, and nothing else of how that works. It owns no storage keys itself; its
// engines do.
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

// deployment is the context that the program is deployed in; it selects the engines.
type deployment string

const (
	publisher  deployment = "publisher"
	managedApp deployment = "managed-app"
)

// contextSetting names the context; publisher unless it is set.
const contextSetting = "ROUNDHOUSE_CONTEXT"

// build makes an engine of the platform.
type build func(p *handler.Platform) (engine.Definition, error)

// builds are the engines of the contexts.
func builds() map[deployment][]build {
	return map[deployment][]build{
		publisher:  {hmacEngine, spnEngine, tlsEngine, provisioningEngine, updatePublisherEngine, alertsEngine},
		managedApp: {updateEngine, healthEngine, alertsEngine},
	}
}

// engines are the engines of the deployment context.
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

// ownInstance says which document of the registry is the app's own. A managed application that does not know its instance has
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
