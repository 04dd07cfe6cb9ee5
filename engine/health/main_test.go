package health_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/engine/health"
	"github.com/vibedata/roundhouse/engine/health/healthtest"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/tables"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const instance = "/subscriptions/s1/größe #1?"

// site is an instance with its components and its registry.
type site struct {
	server   *healthtest.Server
	tables   *tables.Memory
	registry *registry.Registry
}

func newSite(t testing.TB, components map[string]healthtest.Answer) *site {
	t.Helper()
	s := &site{server: healthtest.New(), tables: tables.NewMemory()}
	for name, answer := range components {
		s.server.Set(instance, name, answer)
	}
	s.registry = registry.New(s.tables, "")
	if err := s.registry.CreateTable(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.add(t, instance)
	return s
}

func (s *site) add(t testing.TB, id string) {
	t.Helper()
	i := registry.Instance{InstanceID: id, TenantID: "tenant"}
	if err := i.SetField("version", "kept"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.registry.Create(t.Context(), i); err != nil {
		t.Fatal(err)
	}
}

func (s *site) steps(t testing.TB, r health.Registry) *health.Steps {
	t.Helper()
	checker, err := health.NewHTTP(s.server.URL, s.server.Client())
	if err != nil {
		t.Fatal(err)
	}
	steps, err := health.New(health.Config{Checker: checker, Registry: r})
	if err != nil {
		t.Fatal(err)
	}
	return steps
}

// state is the registry's state: of the instance, of its components, and the lock holder.
type state struct {
	Status     health.Status
	Components map[string]health.Report
	Lock       string
}

func (s *site) state(t testing.TB) state {
	t.Helper()
	i, err := s.registry.Get(t.Context(), instance)
	if err != nil {
		t.Fatal(err)
	}
	summary, _, err := health.SummaryOf(i)
	if err != nil {
		t.Fatal(err)
	}
	now := state{Status: summary.Status, Lock: i.Lock.JobID}
	for name, c := range summary.Components {
		if now.Components == nil {
			now.Components = map[string]health.Report{}
		}
		now.Components[name] = c.Report
	}
	var version string
	if _, err := i.Field("version", &version); err != nil || version != "kept" {
		t.Errorf("what others wrote: %q, %v", version, err)
	}
	return now
}
