package health_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/engine/health"
	"github.com/vibedata/roundhouse/engine/health/healthtest"
	"github.com/vibedata/roundhouse/engine/registry"
)

// stuck is a registry that takes no change for a while.
type stuck struct {
	*registry.Registry
	tries    int // until it takes one
	meantime func()
}

func (s *stuck) Update(ctx context.Context, id, job string, change func(*registry.Instance) error) (registry.Instance, error) {
	if s.tries--; s.tries >= 0 {
		s.meantime()
		return registry.Instance{}, errors.New("stuck")
	}
	return s.Registry.Update(ctx, id, job, change)
}

// The next attempt looks again: it does not note what the one before has seen and could not note.
func TestTheNextAttemptChecksAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, map[string]healthtest.Answer{"web": healthtest.Pass()})
		r := &stuck{s.registry, 4, func() { s.server.Set(instance, "web", healthtest.Answer{Status: 503}) }}
		p := newPlantOver(t, s, r)
		p.tick(t, time.Now())
		p.host(t)
		if now := p.state(t); now.Status != health.Unhealthy || now.Lock != "" || len(p.deadLetters(t)) != 0 {
			t.Errorf("%+v, dead letters %+v, history %v", now, p.deadLetters(t), p.history(t))
		}
	})
}
