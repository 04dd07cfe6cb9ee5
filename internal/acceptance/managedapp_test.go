package acceptance

import (
	"crypto/rand"
	"fmt"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/alerts"
	"github.com/vibedata/roundhouse/engine/health"
	"github.com/vibedata/roundhouse/engine/health/healthtest"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/engine/update"
	"github.com/vibedata/roundhouse/engine/update/updatetest"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// managed is a platform of a managed application with all services that its engines use.
type managed struct {
	*platform
	components *updatetest.Server
	patients   *healthtest.Server
	sink       *sink
	alertsKey  string
	canary     string
}

// TestManagedApp drives every engine of a managed application from its incoming messages to the history, the outside
// effect and the dead letters. Then it searches all stored, logged, returned and sent data for secrets.
func TestManagedApp(t *testing.T) {
	testenv.Long(t)
	t.Parallel() // has its own storage
	s := beginSearch(t, 0)
	m := &managed{components: updatetest.Listen(t), patients: healthtest.Listen(t), sink: newSink(t), alertsKey: rand.Text(), canary: s.bird()}
	m.platform = startWith(t, setup{account: s.server.Account(), context: "managed-app", hostLog: s.hostLog, env: []string{
		"ROUNDHOUSE_LOG_LEVEL=debug", "ROUNDHOUSE_OUTBOX=" + m.sink.document(), "ROUNDHOUSE_ALERTS_KEY=" + m.alertsKey, "ROUNDHOUSE_ALERT_RULES=" + alertRules,
		"ROUNDHOUSE_UPDATE_ENDPOINT=" + m.components.URL, "ROUNDHOUSE_HEALTH_ENDPOINT=" + m.patients.URL, "ROUNDHOUSE_UPDATE_VERIFY_INTERVAL=100ms",
	}})
	t.Run("health", m.testHealth)
	t.Run("update", m.testUpdate)
	t.Run("update, dead", m.testUpdateDead)
	t.Run("alert", m.testAlert)
	t.Run("alert, dead", m.testAlertDead)
	s.collect(t, m.platform, [][]byte{[]byte(m.alertsKey)}, m.sink.heard())
}

// testHealth checks two instances by the overdue timer, and then on request. One of them has an unknown component.
func (m *managed) testHealth(t *testing.T) {
	e, well, odd := at(health.Engine, health.Queue), "well-"+uuid.NewString(), "odd-"+uuid.NewString()
	m.enrol(t, well, nil)
	m.enrol(t, odd, nil)
	m.patients.Set(well, "db", healthtest.Pass())
	m.patients.Set(well, "web", healthtest.Warn())
	m.patients.Set(odd, "../db", healthtest.Pass())
	m.owe(t, health.Engine, "", well)
	m.owe(t, health.Engine, "", odd)
	for range 2 { // a repeated tick checks once
		m.fire(t, "schedules-timer")
	}
	var id string
	testenv.Until(t, "the check", func() bool {
		for _, row := range m.list(t, "/api/history", url.Values{"engine": {health.Engine}, "instanceId": {well}}) {
			id = fmt.Sprint(row["correlationId"])
		}
		return id != ""
	})
	m.ran(t, e, id, "check of "+well+" Succeeded", "check of "+well+" Succeeded", "aggregate of "+well+" Succeeded Succeeded")
	checked := id
	found, _, err := health.SummaryOf(m.unlocked(t, well))
	if err != nil || found.Status != health.Degraded || found.Components["db"].Status != health.Healthy || found.Components["web"].Message != "the disk is nearly full" {
		t.Errorf("the registry says %+v, %v", found, err)
	}

	query := url.Values{"engine": {health.Engine}, "instanceId": {odd}}
	testenv.Until(t, "the dead letter", func() bool { return len(m.list(t, "/api/dlq", query)) > 0 })
	id = fmt.Sprint(m.list(t, "/api/dlq", query)[0]["correlationId"])
	d := m.buried(t, grave{entrance: e, correlationID: id, reason: `has a component that is called "../db"`, count: 1})
	if message := decode[engine.Message](t, []byte(d["originalMessage"].(string))); message.InstanceID != odd || message.TenantID != "tenant-"+odd || len(message.Input) == 0 {
		t.Errorf("original message %s", d["originalMessage"])
	}
	m.checkHistory(t, e, id, m.rests(t, e, id), []string{"check of " + odd + " Failed Failed"})

	m.allWell(t, checked, 1)
	if db, web := m.patients.Looks(well, "db"), m.patients.Looks(well, "web"); db != 1 || web != 1 {
		t.Errorf("%d and %d looks", db, web)
	}
	m.runByHand(t, health.Engine, `{"item":"`+well+`"}`)
	testenv.Until(t, "the check by hand", func() bool { return m.patients.Looks(well, "db") == 2 && m.patients.Looks(well, "web") == 2 })
	m.drained(t, health.Queue)
}

// unlocked returns the document of an instance after its unlocking.
func (m *managed) unlocked(t *testing.T, instance string) registry.Instance {
	t.Helper()
	document, err := registry.New(m.tables, "").Get(t.Context(), instance)
	if err != nil || document.Lock.JobID != "" {
		t.Errorf("the lock of %s: %+v, %v", instance, document.Lock, err)
	}
	return document
}

// testUpdate sends an update twice: it is applied once.
func (m *managed) testUpdate(t *testing.T) {
	e, instance := at(update.Engine, update.Queue), "updated-"+uuid.NewString()
	m.enrol(t, instance, map[string]any{"version": "1.0"})
	m.components.Install(instance, "db", "7")
	id := uuid.NewString()
	body := e.message(t, engine.Message{CorrelationID: id, Operation: update.OperationProcess, InstanceID: instance,
		Input: []byte(`{"version":"2.0","components":[{"name":"db","version":"8"},{"name":"web","version":"1.1"}]}`)})
	m.send(t, update.Queue, body)
	step := "component-update of " + instance + " Succeeded"
	m.ran(t, e, id, "process of "+instance+" Succeeded", step, step+" Succeeded")
	m.send(t, update.Queue, body)
	m.allWell(t, id, 2)
	m.ran(t, e, id, "process of "+instance+" Succeeded", step, step+" Succeeded")

	if diff := cmp.Diff([]string{instance + " db 8", instance + " web 1.1"}, m.components.Log()); diff != "" {
		t.Errorf("what the components were told (-want +got):\n%s", diff)
	}
	document := m.unlocked(t, instance)
	version, err1 := update.VersionOf(document)
	components, err2 := update.ComponentsOf(document)
	if err1 != nil || err2 != nil || version != "2.0" || components["db"].Version != "8" || components["web"].Version != "1.1" {
		t.Errorf("the registry says %s, %+v, %v, %v", version, components, err1, err2)
	}
}

// testUpdateDead: the second component fails, and the first is rolled back.
func (m *managed) testUpdateDead(t *testing.T) {
	e, id, instance := at(update.Engine, update.Queue), uuid.NewString(), "broken-"+uuid.NewString()
	m.enrol(t, instance, map[string]any{"version": "1.0"})
	m.components.Install(instance, "db", "7")
	m.components.Install(instance, "web", "1.0")
	body := e.message(t, engine.Message{CorrelationID: id, InstanceID: instance,
		Input: fmt.Appendf(nil, `{"version":"2.0","components":[{"name":"db","version":"8"},{"name":"web","version":%q}]}`, updatetest.Broken)})
	m.send(t, update.Queue, body)
	m.buried(t, grave{entrance: e, correlationID: id, body: body, reason: "all components are what they were before", count: 1})
	step := "component-update of " + instance
	m.checkHistory(t, e, id, m.rests(t, e, id), []string{"process of " + instance + " Succeeded", step + " Succeeded", step + " Failed",
		step + " Succeeded", step + " Succeeded", "process of " + instance + " Failed Failed"})
	if db, web := m.components.Version(instance, "db"), m.components.Version(instance, "web"); db != "7" || web != "1.0" {
		t.Errorf("the components are %s and %s", db, web)
	}
	if version, err := update.VersionOf(m.unlocked(t, instance)); err != nil || version != "1.0" {
		t.Errorf("the registry says %s, %v", version, err)
	}
}

func (m *managed) testAlert(t *testing.T) {
	body, id := alert(t, m.canary)
	m.raise(t, m.alertsKey, body)
	m.checkAlert(t, m.sink, id)
}

// testAlertDead: a message claims to be an alert but has no kind.
func (m *managed) testAlertDead(t *testing.T) {
	id := uuid.NewString()
	body := alarms.message(t, engine.Message{CorrelationID: id, Operation: alerts.OperationProcess, Input: []byte(`{"schemaId":"AzureMonitorMetricAlert"}`)})
	m.send(t, alerts.Queue, body)
	m.buried(t, grave{entrance: alarms, correlationID: id, body: body, reason: "turn the common alert schema on", count: 1})
	m.checkHistory(t, alarms, id, m.rests(t, alarms, id), []string{"process of publisher Failed Failed"})
}
