package updatepublisher_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/engine/release"
	"github.com/vibedata/roundhouse/engine/updatepublisher"
	"github.com/vibedata/roundhouse/tables"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const canary = "/subscriptions/s1/größe #1?"

// publisher is a registry of instances.
type publisher struct {
	tables   *tables.Memory
	registry *registry.Registry
}

func newPublisher(t testing.TB) *publisher {
	t.Helper()
	p := &publisher{tables: tables.NewMemory()}
	p.registry = registry.New(p.tables, "")
	if err := p.registry.CreateTable(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p
}

// add registers an instance with fields.
func (p *publisher) add(t testing.TB, id, tenant string, fields map[string]any) {
	t.Helper()
	i := registry.Instance{InstanceID: id, TenantID: tenant}
	for name, v := range fields {
		if err := i.SetField(name, v); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.registry.Create(t.Context(), i); err != nil {
		t.Fatal(err)
	}
}

// fill registers one instance of every kind.
func (p *publisher) fill(t testing.TB) {
	t.Helper()
	type fields = map[string]any
	p.add(t, canary, "t1", fields{"ring": "canary", "version": "2.9"})
	p.add(t, "ahead", "t2", fields{"version": "2.1"}) // was in another ring before
	p.add(t, "behind", "", fields{"ring": "stable", "version": "1.9"})
	p.add(t, "broken", "t3", fields{"version": 7})
	p.add(t, "current", "t4", fields{"version": "2.0"})
	p.add(t, "new", "t5", nil)
	p.add(t, "odd", "t6", fields{"version": "nightly"})
	p.add(t, "removed", "t7", fields{"version": "1.0", "gone": true})
	p.add(t, "strange", "t8", fields{"ring": "none", "version": "1.0"})
}

// releases returns the releases of the rings: 2.10 is newer than 2.9.
func releases() []updatepublisher.Release {
	return []updatepublisher.Release{
		{Ring: "canary", Version: "2.10", Components: []release.Component{{Name: "db", Version: "8"}, {Name: "web", Version: "1.1"}}},
		{Ring: "stable", Version: "2.0"},
	}
}

func (p *publisher) steps(t testing.TB) *updatepublisher.Steps {
	t.Helper()
	steps, err := updatepublisher.New(updatepublisher.Config{Registry: p.registry, Releases: releases(), Page: 4,
		Wanted: func(i registry.Instance) (bool, error) {
			gone := false
			_, err := i.Field("gone", &gone)
			return !gone, err
		}})
	if err != nil {
		t.Fatal(err)
	}
	return steps
}
