package updatepublisher_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/enginetest"
	"github.com/vibedata/roundhouse/engine/updatepublisher"
)

// platform is the engine on the pipeline, over stores in memory.
type platform struct {
	*publisher
	*enginetest.World
}

func newPlatform(t *testing.T) *platform {
	t.Helper()
	p := newPublisher(t)
	return newPlatformOver(t, p, p.steps(t))
}

// newPlatformOver returns a platform whose process has the steps.
func newPlatformOver(t *testing.T, over *publisher, steps *updatepublisher.Steps) *platform {
	t.Helper()
	return &platform{over, enginetest.New(t, enginetest.Config{Tables: over.tables, Engines: func(enginetest.Stores) []engine.Definition {
		return []engine.Definition{updatepublisher.Definition(steps)}
	}})}
}

func (p *platform) history(t *testing.T) map[string]int {
	t.Helper()
	page, err := engine.NewHistory(p.tables, "").List(t.Context(), engine.HistoryFilter{Engines: []string{updatepublisher.Engine}, Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]int{}
	for _, e := range page.Entries {
		rows[fmt.Sprintf("%s %s %s", e.InstanceID, e.Operation, e.Status)]++
	}
	return rows
}

// A slot is evaluated once, however often the timer fires; the next one repeats no notice, unless a message asks for
// it.
func TestFromTimerToHistory(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	p.fill(t)
	slot := time.Date(2026, 1, 1, 12, 23, 0, 0, time.UTC)
	tick := func(slot time.Time) {
		t.Helper()
		if _, err := updatepublisher.Every("0 23 * * * *").Send(t.Context(), engine.Definition{Name: updatepublisher.Engine, Queue: updatepublisher.Queue}, p.Queues, slot); err != nil {
			t.Fatal(err)
		}
		p.Deliver()
	}
	tick(slot)
	tick(slot.In(time.FixedZone("elsewhere", 3600)))
	// Three pages, of which the third notifies no instance.
	want := map[string]int{"publisher evaluate Succeeded": 3, "publisher notify Succeeded": 2}
	if diff := cmp.Diff(want, p.history(t)); diff != "" || len(p.Published()) != 4 {
		t.Errorf("%d events, history (-want +got):\n%s", len(p.Published()), diff)
	}
	tick(slot.Add(time.Hour))
	if rows := p.history(t); rows["publisher evaluate Succeeded"] != 6 || len(p.Published()) != 4 {
		t.Errorf("%d events, history %v", len(p.Published()), rows)
	}
	p.Send(updatepublisher.Queue, `{"correlationId":"again","operation":"notify","instanceId":"new"}`)
	p.Deliver()
	if rows := p.history(t); rows["new notify Succeeded"] != 1 || len(p.Published()) != 5 {
		t.Errorf("%d events, history %v", len(p.Published()), rows)
	}
}

// Many instances are notified, page by page.
func TestManyInstances(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	for n := range 50 {
		p.add(t, fmt.Sprintf("i%03d", n), "t", nil)
	}
	if _, err := updatepublisher.Every("0 23 * * * *").Send(t.Context(), engine.Definition{Name: updatepublisher.Engine, Queue: updatepublisher.Queue}, p.Queues, time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	p.Deliver()
	if len(p.Published()) != 50 {
		t.Errorf("%d events", len(p.Published()))
	}
}

func TestFromMessageToDeadLetter(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	p.Send(updatepublisher.Queue, `{"correlationId":"c1","operation":"notify"}`)
	p.Deliver()
	dead := p.DeadLetters(updatepublisher.Engine)
	if len(dead) != 1 || !strings.Contains(dead[0].ErrorMessage, updatepublisher.ErrInput.Error()) || dead[0].OriginalQueue != updatepublisher.Queue ||
		dead[0].CorrelationID != "c1" {
		t.Errorf("%+v", dead)
	}
	if rows := p.history(t); rows["publisher notify Failed"] != 1 || len(p.Published()) != 0 {
		t.Errorf("history %v", rows)
	}
}
