package health_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/engine/health"
	"github.com/vibedata/roundhouse/engine/health/healthtest"
	"github.com/vibedata/roundhouse/engine/registry"
)

// stuck is a registry that accepts no change for a while.
type stuck struct {
	*registry.Registry
	tries    int  // until it accepts one
	applied  bool // it accepts them, but returns an error
	meantime func()
}

func (s *stuck) Update(ctx context.Context, id, job string, change func(*registry.Instance) error) (registry.Instance, error) {
	if s.tries--; s.tries >= 0 {
		if s.meantime(); s.applied {
			_, _ = s.Registry.Update(ctx, id, job, change) // its answer is lost
		}
		return registry.Instance{}, errors.New("stuck")
	}
	return s.Registry.Update(ctx, id, job, change)
}

// The next attempt checks again: it does not record the results of the previous one that could not be recorded.
func TestTheNextAttemptChecksAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, map[string]healthtest.Answer{"web": healthtest.Pass()})
		r := &stuck{Registry: s.registry, tries: 4, meantime: func() { s.server.Set(instance, "web", healthtest.Answer{Status: 503}) }}
		p := newPlantOver(t, s, r)
		p.tick(t, time.Now())
		p.Run()
		if now := p.state(t); now.Status != health.Unhealthy || now.Lock != "" || len(p.deadLetters()) != 0 {
			t.Errorf("%+v, dead letters %+v, history %v", now, p.deadLetters(), p.history(t))
		}
	})
}

// A change is published once, and not lost when its run could not publish or record it.
func TestChangesArePublished(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, map[string]healthtest.Answer{"web": healthtest.Pass()})
		r := &stuck{Registry: s.registry, applied: true, meantime: func() {}}
		p := newPlantOver(t, s, r)
		check := func(web healthtest.Answer, want ...string) {
			t.Helper()
			time.Sleep(5 * time.Minute)
			s.server.Set(instance, "web", web)
			p.tick(t, time.Now())
			p.Run()
			if !slices.Equal(p.tells, want) {
				t.Errorf("published %v, want %v", p.tells, want)
			}
		}
		check(healthtest.Pass(), "Healthy")
		check(healthtest.Pass(), "Healthy")
		check(healthtest.Warn(), "Healthy", "Degraded")
		r.tries = 1000 // it becomes a dead letter
		check(healthtest.Fail(), "Healthy", "Degraded")
		r.tries = 0
		check(healthtest.Fail(), "Healthy", "Degraded", "Unhealthy")
		check(healthtest.Pass(), "Healthy", "Degraded", "Unhealthy", "Healthy")
	})
}
