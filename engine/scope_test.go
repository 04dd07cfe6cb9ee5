package engine_test

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/orchestrator"
)

// scoped returns a pipeline whose engine has a scope.
func (w *world) scoped(t *testing.T, scope engine.Scope) *engine.Pipeline {
	t.Helper()
	d := w.definition()
	d.Singleton = scope
	p, err := engine.NewPipeline(engine.Config{Definitions: []engine.Definition{d}, Runtime: w.Runtime(), Queues: w.Queues,
		History: engine.NewHistory(w.Tables, ""), DeadLetters: engine.NewDeadLetters(w.Tables, ""), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The runs of a singleton share the id of their orchestration, which names the engine and the instance or the tenant;
// so a second run is refused while the first is in progress. Other runs have an id each.
func TestScopes(t *testing.T) {
	t.Parallel()
	const message = `{"correlationId":%q,"instanceId":"i1","tenantId":%q}`
	for name, tt := range map[string]struct {
		scope    engine.Scope
		first    string
		second   string
		conflict bool
	}{
		"per instance": {engine.PerInstance, "turntable-i1", "turntable-i1", true},
		"per tenant":   {engine.PerTenant, "turntable-contoso", "turntable-contoso", true},
		"none":         {"", "turntable-one", "turntable-two", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.waits = true
				p := w.scoped(t, tt.scope)
				first := engine.Delivery{Queue: testQueue, ID: "m", Body: fmt.Appendf(nil, message, "one", "Contoso"), DequeueCount: 1, InsertedAt: time.Now()}
				if err := p.Handle(t.Context(), first); err != nil {
					t.Fatal(err)
				}
				if out, err := w.Runtime().Get(t.Context(), tt.first); err != nil || out.CorrelationID != "one" {
					t.Errorf("%s: %+v, %v", tt.first, out, err)
				}
				s, err := p.Admit(t.Context(), orchestrator.Start{Orchestrator: "turntable", Input: fmt.Appendf(nil, message, "two", "CONTOSO")})
				conflict, refused := errors.AsType[*engine.ConflictError](err)
				if refused != tt.conflict || refused && conflict.Holder != "one" || !refused && (err != nil || s.ID != tt.second) {
					t.Errorf("the second: %s, %v", s.ID, err)
				}
			})
		})
	}
	t.Run("a message without a tenant", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		p := w.scoped(t, engine.PerTenant)
		if err := p.Handle(t.Context(), engine.Delivery{Queue: testQueue, ID: "m", Body: []byte(`{"correlationId":"one"}`), DequeueCount: 1}); err != nil {
			t.Fatal(err)
		}
		if dead := w.DeadLetters("turntable"); len(dead) != 1 || dead[0].DetectedReason != engine.ReasonUndecodable {
			t.Errorf("%+v", dead)
		}
	})
}
