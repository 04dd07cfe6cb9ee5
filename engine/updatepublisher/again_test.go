package updatepublisher_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/engine/updatepublisher"
)

// away is a registry that can only be listed for a while.
type away struct {
	*registry.Registry
	looks int // until it is back
}

func (a *away) Get(ctx context.Context, id string) (registry.Instance, error) {
	if a.looks--; a.looks >= 0 {
		return registry.Instance{}, errors.New("away")
	}
	return a.Registry.Get(ctx, id)
}

// The next attempt uses the current registry: it notifies an instance that was added meanwhile.
func TestTheNextAttemptEvaluatesAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		over := newPublisher(t)
		over.add(t, "behind", "", map[string]any{"ring": "stable", "version": "1.9"})
		steps, err := updatepublisher.New(updatepublisher.Config{Registry: &away{over.registry, 4}, Releases: releases()})
		if err != nil {
			t.Fatal(err)
		}
		p := newPlatformOver(t, over, steps)
		d := engine.Delivery{Queue: updatepublisher.Queue, ID: "m1", Body: []byte(`{"correlationId":"c1"}`), DequeueCount: 1, InsertedAt: time.Now()}
		if err := p.Process().Handle(t.Context(), d); err == nil || len(p.Published()) != 0 {
			t.Fatalf("the first attempt: %v, %d events", err, len(p.Published()))
		}
		over.add(t, "late", "", map[string]any{"ring": "stable", "version": "1.9"})
		d.DequeueCount = 2
		if err := p.Process().Handle(t.Context(), d); err != nil || len(p.Published()) != 2 {
			t.Errorf("the second attempt: %v, %d events", err, len(p.Published()))
		}
	})
}
