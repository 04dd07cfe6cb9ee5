package update_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/engine/update"
	"github.com/vibedata/roundhouse/engine/update/updatetest"
	"github.com/vibedata/roundhouse/tables"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const instance = "/subscriptions/s1/größe #1?"

// site is an instance with its components and its registry.
type site struct {
	server   *updatetest.Server
	tables   *tables.Memory
	registry *registry.Registry
}

// newSite returns a site with the components web, in 1.0, and db, in 7.
func newSite(t testing.TB) *site {
	t.Helper()
	s := &site{server: updatetest.New(), tables: tables.NewMemory()}
	s.server.Install(instance, "web", "1.0")
	s.server.Install(instance, "db", "7")
	s.registry = registry.New(s.tables, "")
	if err := s.registry.CreateTable(t.Context()); err != nil {
		t.Fatal(err)
	}
	i := registry.Instance{InstanceID: instance}
	if err := i.SetField("components", map[string]any{"cache": map[string]any{"version": "3", "note": "kept"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.registry.Create(t.Context(), i); err != nil {
		t.Fatal(err)
	}
	return s
}

// steps returns the steps of a process with the registry r.
func (s *site) steps(t testing.TB, r update.Registry) *update.Steps {
	t.Helper()
	components, err := update.NewHTTP(s.server.URL, s.server.Client())
	if err != nil {
		t.Fatal(err)
	}
	steps, err := update.New(update.Config{Components: components, Registry: r, VerifyTimeout: 10 * time.Minute,
		Approvals: map[string]update.ApprovalRequest{"canary": {Roles: []string{"approver"}}}})
	if err != nil {
		t.Fatal(err)
	}
	return steps
}

// state is the state of the components, and of the registry.
type state struct {
	Web, Db, New string
	Version      string
	Noted        map[string]string
	Pending      bool
	Lock         string
}

func (s *site) state(t testing.TB) state {
	t.Helper()
	i, err := s.registry.Get(t.Context(), instance)
	if err != nil {
		t.Fatal(err)
	}
	now := state{Web: s.server.Version(instance, "web"), Db: s.server.Version(instance, "db"), New: s.server.Version(instance, "new"),
		Noted: map[string]string{}, Lock: i.Lock.JobID}
	if now.Version, err = update.VersionOf(i); err != nil {
		t.Fatal(err)
	}
	components, err := update.ComponentsOf(i)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range components {
		now.Noted[name] = c.Version
	}
	var kept map[string]struct{ Note string }
	if _, err := i.Field("components", &kept); err != nil || kept["cache"].Note != "kept" {
		t.Errorf("what others wrote: %+v, %v", kept, err)
	}
	if now.Pending, err = i.Field("pendingUpdate", &struct{}{}); err != nil {
		t.Fatal(err)
	}
	return now
}
