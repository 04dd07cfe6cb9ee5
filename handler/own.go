package handler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/handler/settings"
	"github.com/vibedata/roundhouse/services/certificates"
	"github.com/vibedata/roundhouse/services/secrets"
)

// place keeps history and dead letters in the tables of the app's own document. Engines may still change that
// document's instance.
func (p *parts) place(s settings.Settings) {
	p.platform.InstanceID, p.platform.TenantID = cmp.Or(s.Instance.ID, engine.PublisherInstance), s.Instance.TenantID
	p.placement = engine.NewPlacement(engine.PlacementConfig{Tables: p.platform.Tables, Registry: p.platform.Registry, Account: accountName(s.Storage),
		InstanceID: func() string { return p.platform.InstanceID }, Others: []string{secrets.DevelopmentTable, certificates.DevelopmentTable}})
	p.platform.Tables = p.placement
}

// registerOwn creates the app's own document if it is missing, with the current configuration. An existing one stays
// unchanged.
func (p *parts) registerOwn(ctx context.Context) error {
	own := p.platform.InstanceID
	if own == "" {
		return nil
	}
	found, err := p.platform.Registry.Get(ctx, own)
	switch {
	case err == nil && p.platform.TenantID != "" && !strings.EqualFold(found.TenantID, p.platform.TenantID):
		p.toBeTold.Store(true)
		p.log.WarnContext(ctx, "the registry says another tenant of this app's instance than the settings, and counts: change one of them",
			"instanceId", own, "registry", found.TenantID, "settings", p.platform.TenantID)
		return nil
	case !errors.Is(err, registry.ErrNotFound):
		return err
	}
	names, err := p.placement.Names(ctx)
	if err != nil {
		return err
	}
	_, err = p.platform.Registry.Create(ctx, registry.Instance{InstanceID: own, TenantID: p.platform.TenantID, EngineTablesConfig: &registry.EngineTablesConfig{
		StorageAccountName: accountName(p.settings.Storage), DlqTableName: names.DeadLetters, HistoryTableName: names.History, RetentionDays: int(engine.DefaultKeep.Hours() / 24)}})
	if errors.Is(err, registry.ErrExists) {
		return nil // another process of the app was first
	}
	if err != nil {
		return fmt.Errorf("register the app's own instance: %w", err)
	}
	p.log.InfoContext(ctx, "the app's own instance is registered", "instanceId", own, "tenantId", p.platform.TenantID)
	return nil
}

// announceTables records the app's tables in storage, and reports previous ones that still hold rows.
func (p *parts) announceTables(ctx context.Context) error {
	left, err := p.placement.Announce(ctx, p.names)
	for _, table := range left {
		p.toBeTold.Store(true)
		p.log.WarnContext(ctx, "a table that the app worked with before still holds history or dead letters, which are neither shown nor deleted: "+
			"name it in engineTablesConfig again to see to them, or delete the table (docs/registry.md)", "table", table)
	}
	return err
}

// instancesCheck returns the health check for instances, nil when engines need none.
func (p *parts) instancesCheck() func(context.Context) (bool, error) {
	if !p.platform.WorksOnInstances {
		return nil
	}
	return p.hasInstances
}

// hasInstances reports whether the registry has an instance other than the publisher.
func (p *parts) hasInstances(ctx context.Context) (bool, error) {
	page, err := p.platform.Registry.List(ctx, 2, "")
	return slices.ContainsFunc(page.Instances, func(i registry.Instance) bool { return i.InstanceID != engine.PublisherInstance }), err
}

// missInstances logs that the engines have no instances.
func (p *parts) missInstances(ctx context.Context) error {
	if !p.platform.WorksOnInstances || p.platform.InstanceID != "" { // that one is being created
		return nil
	}
	some, err := p.hasInstances(ctx)
	if err == nil && !some {
		p.toBeTold.Store(true)
		p.log.WarnContext(ctx, "no instance is registered: the engines have nothing to work on; set ROUNDHOUSE_INSTANCE_ID, or add one with roundhouse registry add (docs/registry.md)")
	}
	return err
}

// rules returns the retention of rows of history and dead letters, from the current own document.
func (p *parts) rules(ctx context.Context) ([]engine.Retention, error) {
	config, err := p.placement.Config(ctx)
	if err != nil {
		return nil, fmt.Errorf("nothing is deleted while it is not known for how long it is to be kept: %w", err)
	}
	own := map[string]engine.Retention{}
	for _, name := range p.names {
		own[name] = engine.Retention{Engines: []string{name}, Keep: engine.KeepOf(config, name, 0)}
	}
	for _, d := range p.definitions {
		own[d.Name] = engine.Retention{Engines: []string{d.Name}, Keep: engine.KeepOf(config, d.Name, d.Keep), Singletons: d.Singleton != ""}
	}
	rules := make([]engine.Retention, 0, len(own))
	for _, name := range p.names {
		rules = append(rules, own[name])
	}
	return rules, nil
}

// accountName returns the name of a storage account, "" if unknown: a custom address need not contain it.
func accountName(a azure.Account) string {
	if a.Name != "" {
		return a.Name
	}
	u, err := url.Parse(a.TableEndpoint)
	if err != nil {
		return ""
	}
	name, rest, _ := strings.Cut(u.Hostname(), ".")
	if !strings.HasPrefix(rest, "table.") {
		return ""
	}
	return name
}
