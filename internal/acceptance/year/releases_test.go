package year

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/alerts"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/engine/release"
	"github.com/vibedata/roundhouse/engine/update"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// home is the instance of the managed application.
const home = "home"

// releases make versions: a few in a year, and the last not right at its end.
type releases struct {
	random *rand.Rand
	next   time.Time
	made   int
}

func (r *releases) version() string { return fmt.Sprintf("%d.0.0", r.made) }

// step makes a release, which is a setting of the publisher, so its app is redeployed.
func (r *releases) step(publisher *site) {
	now := time.Now()
	if now.Before(r.next) || r.made == 12 {
		return
	}
	r.made++
	r.next = now.Add(10*day + time.Duration(r.random.Int64N(int64(20*day))))
	publisher.Restart(map[string]string{"ROUNDHOUSE_OUTBOX": publisherOutbox,
		"TEST_RELEASES": fmt.Sprintf(`[{"ring":"stable","version":%q,"components":[{"name":"db","version":%[1]q},{"name":"web","version":%[1]q}]}]`, r.version())}, publisher.change)
}

// forward passes a release notice to the managed application.
func forward(t testing.TB, managed *site, n release.Notice, id string) {
	t.Helper()
	input := testenv.Must(json.Marshal(map[string]any{"version": n.Version, "components": n.Components}))(t)
	body, err := json.Marshal(engine.Message{CorrelationID: id, Engine: update.Engine, InstanceID: home, TenantID: tenant, Input: input})
	if err != nil {
		t.Fatal(err)
	}
	managed.Send(update.Queue, string(body))
}

// check makes sure that the managed application has the last release.
func (r *releases) check(t testing.TB, managed *site) {
	t.Helper()
	document := testenv.Must(registry.New(managed.Tables, "").Get(t.Context(), home))(t)
	if version, err := update.VersionOf(document); err != nil || version != r.version() {
		t.Errorf("the managed application has version %s, %v; want %s", version, err, r.version())
	}
}

// monitor raises alerts.
type monitor struct {
	random *rand.Rand
	next   time.Time
	raised int
}

func (m *monitor) step(managed *site) {
	now := time.Now()
	if now.Before(m.next) {
		return
	}
	m.next = now.Add(time.Duration(m.random.ExpFloat64() * float64(9*day)))
	m.raised++
	managed.Send(alerts.Queue, fmt.Sprintf(`{"schemaId":"azureMonitorCommonAlertSchema","data":{"essentials":{"alertId":"/alerts/%d","alertRule":"errors","severity":"Sev1","monitorCondition":"Fired","firedDateTime":%q}}}`,
		m.raised, now.UTC().Format(time.RFC3339)))
}

// check makes sure that every alert was processed once. The history keeps them for 90 days.
func (m *monitor) check(t testing.TB, managed *site) {
	t.Helper()
	seen := map[string]bool{}
	for _, entry := range managed.History(alerts.Engine) {
		if seen[entry.CorrelationID] || entry.Status != "Succeeded" {
			t.Errorf("alert %s: %s, and it was there before: %t", entry.CorrelationID, entry.Status, seen[entry.CorrelationID])
		}
		seen[entry.CorrelationID] = true
	}
	if m.raised < 2 || len(seen) == 0 {
		t.Errorf("%d alerts were raised, and %d are in the history", m.raised, len(seen))
	}
}
