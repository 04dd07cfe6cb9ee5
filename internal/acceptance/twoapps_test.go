package acceptance

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	mathrand "math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/health"
	"github.com/vibedata/roundhouse/engine/health/healthtest"
	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/engine/provisioning"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/engine/spn"
	enginetls "github.com/vibedata/roundhouse/engine/tls"
	"github.com/vibedata/roundhouse/engine/update"
	"github.com/vibedata/roundhouse/engine/update/updatetest"
	"github.com/vibedata/roundhouse/engine/updatepublisher"
	"github.com/vibedata/roundhouse/internal/azurite"
	"github.com/vibedata/roundhouse/internal/localhost"
	"github.com/vibedata/roundhouse/internal/marketplacefake"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// eventsKey is the name of the secret, in both vaults, that signs events between the apps.
const eventsKey = "events-between-apps"

// twoReleases are those of two rings.
const twoReleases = `[{"ring":"stable","version":"1.0.0","components":[{"name":"db","version":"1"},{"name":"web","version":"1"}]},
	{"ring":"canary","version":"2.0.0","components":[{"name":"db","version":"2"},{"name":"web","version":"2"}]}]`

// pair is a publisher and one of its managed applications: two apps with a host and a storage account each, which
// communicate over HTTP only.
type pair struct {
	publisher *world
	managed   *managed
	instance  string
	purchase  marketplacefake.Operation
	random    *mathrand.Rand
	pids      [2]int // of the handlers at the start of the test
}

// TestTwoApps takes an instance through its life, from the purchase to its second release, while handlers on both sides
// are killed. At the end both sides agree.
func TestTwoApps(t *testing.T) {
	testenv.Long(t)
	t.Parallel() // has its own storage
	p := newPair(t)
	t.Run("provisioned", p.testProvisioned)
	t.Run("first release, while a component is down", p.testFirstRelease)
	t.Run("second release, in another ring and with an approval", p.testSecondRelease)
	t.Run("rotations", p.testRotations)
	t.Run("health", p.testHealthReported)
	t.Run("alerts", p.testAlerts)
	t.Run("both say the same", p.testAgreement)
}

func newPair(t *testing.T) *pair {
	t.Helper()
	server := testenv.Must(azurite.Start(t.Context(), azurite.Config{Accounts: []string{"managed"}}))(t)
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	p := &pair{random: mathrand.New(mathrand.NewPCG(seed, 0))}
	raw := make([]byte, 32)
	rand.Read(raw) // never fails
	key := []byte(base64.StdEncoding.EncodeToString(raw))

	home, away := developmentVault(t, server.Account()), developmentVault(t, server.AccountNamed("managed"))
	for _, v := range []vault{home, away} {
		testenv.Must(v.Add(t.Context(), eventsKey, key, nil))(t)
	}
	const keys = `[{"id":"k1","secret":"` + eventsKey + `"}]`
	o := newOutside(t, home)
	sent := strings.NewReplacer(`"destinations":{`, `"destinations":{"instances":{"instance":{"signingKeys":`+keys+`,"allow":["127.0.0.0/8"],"allowPlaintext":true}},`,
		`"routes":[`, `"routes":[{"eventType":"update.available","destination":"instances"},`).Replace(o.sink.document())
	w := &world{startWith(t, setup{account: server.Account(), vault: home, env: append(o.environment(t), "ROUNDHOUSE_OUTBOX="+sent,
		"ROUNDHOUSE_UPDATE_RELEASES="+twoReleases, "ROUNDHOUSE_REPORT_INTAKE_KEYS="+keys)}), o, ""}
	o.challenges(w.platform)
	p.publisher, p.purchase = w, w.order(t)
	p.instance = p.purchase.SubscriptionID

	m := &managed{components: updatetest.Listen(t), patients: healthtest.Listen(t), sink: newSink(t), alertsKey: rand.Text()}
	reports := strings.NewReplacer(`"destinations":{`, `"destinations":{"publisher":{"http":{"url":"`+w.host.URL()+`/api/reports","structured":true,"signingKeys":`+keys+`,"allow":["127.0.0.0/8"],"allowPlaintext":true}},`,
		`"routes":[`, `"routes":[{"eventType":"update.finished","destination":"publisher"},{"eventType":"health.changed","destination":"publisher"},`).Replace(m.sink.document())
	m.platform = startWith(t, setup{account: server.AccountNamed("managed"), context: "managed-app", vault: away, env: []string{
		"ROUNDHOUSE_LOG_LEVEL=debug", "ROUNDHOUSE_INSTANCE_ID=" + p.instance, "ROUNDHOUSE_TENANT_ID=contoso",
		"ROUNDHOUSE_OUTBOX=" + reports, "ROUNDHOUSE_UPDATE_INTAKE_KEYS=" + keys,
		`ROUNDHOUSE_UPDATE_APPROVAL={"canary":{"deadlineSeconds":3600,"roles":["approver"]}}`,
		"ROUNDHOUSE_ALERTS_KEY=" + m.alertsKey, "ROUNDHOUSE_ALERT_RULES=" + alertRules,
		"ROUNDHOUSE_UPDATE_ENDPOINT=" + m.components.URL, "ROUNDHOUSE_HEALTH_ENDPOINT=" + m.patients.URL, "ROUNDHOUSE_UPDATE_VERIFY_INTERVAL=100ms",
	}})
	p.managed = m
	p.pids = [2]int{w.host.HandlerPID(), m.host.HandlerPID()}
	m.components.Install(p.instance, "db", "0")
	m.components.Install(p.instance, "web", "0")
	m.patients.Set(p.instance, "db", healthtest.Pass())
	m.patients.Set(p.instance, "web", healthtest.Warn())
	return p
}

// kill lets the handlers of both sides die at one of their next storage requests.
func (p *pair) kill() {
	for _, side := range []*platform{p.publisher.platform, p.managed.platform} {
		side.proxy.arm(1+p.random.IntN(30), []moment{before, after}[p.random.IntN(2)])
	}
}

// spare ends that, and waits for living handlers: otherwise a request of the next test could meet a dying or starting
// one.
func (p *pair) spare(t *testing.T) {
	t.Helper()
	for _, side := range []*platform{p.publisher.platform, p.managed.platform} {
		side.proxy.arm(0, "")
		testenv.Await(t, "a handler that is ready", func() (answer string, ok bool) {
			quiet := side.proxy.quiet()
			status, body := side.ask(t, http.MethodGet, "/api/health/ready", nil, nil)
			return fmt.Sprintf("%d %s", status, body), quiet && status == http.StatusOK
		})
	}
}

// testProvisioned: a customer buys, the instance starts, and an operator sets its address and ring.
func (p *pair) testProvisioned(t *testing.T) {
	w := p.publisher
	op := p.purchase
	id := engine.DeriveCorrelationID("marketplace-operation", op.ID)
	w.webhook(t, op)
	w.bootstrap(t, id, provisioning.Bootstrap{Status: "Succeeded", Version: "0"})
	w.ran(t, provisions, id, provisioned(p.instance)...)
	w.checkState(t, p.instance, "contoso", provisioning.StateActive)
	p.change(t, map[string]any{"ring": "stable", "endpoints": map[string]string{"events": p.managed.host.URL() + "/api/updates"}})

	// The managed application has registered itself at its start.
	if document := p.managed.unlocked(t, p.instance); document.TenantID != "contoso" {
		t.Errorf("the managed application's own document is %+v", document)
	}
}

// change changes the document of the instance at the publisher, as an operator does.
func (p *pair) change(t *testing.T, patch map[string]any) {
	t.Helper()
	body := testenv.Must(json.Marshal(patch))(t)
	path := "/api/registry/" + url.PathEscape(p.instance)
	testenv.Until(t, "the change of the instance", func() bool { // an engine may hold its lock, or the handler may be dead
		status, answer := p.publisher.ask(t, http.MethodPatch, path, nil, body)
		if status/100 == 4 && status != http.StatusConflict {
			t.Fatalf("PATCH %s: %d %s", path, status, answer)
		}
		return status == http.StatusOK
	})
}

// release lets the publisher check which instances lack a release.
func (p *pair) release(t *testing.T) {
	t.Helper()
	p.publisher.send(t, updatepublisher.Queue, at(updatepublisher.Engine, updatepublisher.Queue).message(t, engine.Message{CorrelationID: uuid.NewString(), Operation: updatepublisher.OperationEvaluate}))
}

// reported waits until the publisher has a report of a version.
func (p *pair) reported(t *testing.T, version string) {
	t.Helper()
	var got string
	testenv.Until(t, "the report of version "+version, func() bool {
		document, err := registry.New(p.publisher.tables, "").Get(t.Context(), p.instance)
		if err == nil {
			got, err = update.VersionOf(document)
		}
		if err != nil {
			t.Fatal(err)
		}
		return got == version
	})
}

// testFirstRelease: a component does not answer at first.
func (p *pair) testFirstRelease(t *testing.T) {
	for range 6 {
		p.managed.components.Inject(updatetest.Fault{Method: http.MethodGet, Status: http.StatusServiceUnavailable})
	}
	p.kill()
	p.release(t)
	p.reported(t, "1.0.0")
	p.spare(t)
}

// testSecondRelease: an operator moves the instance to the ring with the release, and a user approves.
func (p *pair) testSecondRelease(t *testing.T) {
	p.change(t, map[string]any{"ring": "canary"})
	p.kill()
	p.release(t)
	var task item
	testenv.Until(t, "the question", func() bool {
		open := p.managed.list(t, "/api/tasks", url.Values{"status": {"Created"}})
		if len(open) > 0 {
			task = open[0]
		}
		return len(open) > 0
	})
	if version := p.managed.components.Version(p.instance, "db"); version != "1" {
		t.Errorf("before the approval the component has version %s", version)
	}
	path := fmt.Sprintf("/api/tasks/%s/%s/complete", url.PathEscape(task["orchestrationId"].(string)), url.PathEscape(task["taskId"].(string)))
	testenv.Until(t, "the approval", func() bool {
		status, answer := p.managed.ask(t, http.MethodPost, path, nil, []byte(`{"output":{"approved":true}}`))
		if status/100 == 4 && status != http.StatusConflict {
			t.Fatalf("POST %s: %d %s", path, status, answer)
		}
		return status/100 == 2
	})
	p.reported(t, "2.0.0")
	p.spare(t)
	for _, component := range []string{"db", "web"} {
		if version := p.managed.components.Version(p.instance, component); version != "2" {
			t.Errorf("component %s has version %s", component, version)
		}
	}
}

// testRotations: a key and a certificate of the instance, and the secret of an application are rotated, while handlers
// die.
func (p *pair) testRotations(t *testing.T) {
	w := p.publisher
	certified, key, secret := uuid.NewString(), uuid.NewString(), uuid.NewString()
	p.kill()
	w.send(t, hmac.Queue, rotation(key, p.instance))
	w.send(t, spn.Queue, at(spn.Engine, spn.Queue).message(t, engine.Message{CorrelationID: secret, TenantID: "contoso", Input: fmt.Appendf(nil, `{"applicationId":%q}`, w.application)}))
	w.send(t, enginetls.Queue, at(enginetls.Engine, enginetls.Queue).message(t, engine.Message{CorrelationID: certified, Input: fmt.Appendf(nil, `{"domains":[%q]}`, rotatedDomain)}))
	w.ran(t, at(hmac.Engine, hmac.Queue), key, "rotate of "+p.instance+" Succeeded", "notify of "+p.instance+" Succeeded Succeeded")
	w.ran(t, at(spn.Engine, spn.Queue), secret, "rotate of publisher Succeeded Succeeded")
	w.ran(t, at(enginetls.Engine, enginetls.Queue), certified, "renew of publisher Succeeded", "distribute of publisher Succeeded Succeeded")
	p.spare(t)
}

// testHealthReported: the managed application checks its components, and the publisher has the results.
func (p *pair) testHealthReported(t *testing.T) {
	id := uuid.NewString()
	p.kill()
	p.managed.send(t, health.Queue, at(health.Engine, health.Queue).message(t, engine.Message{CorrelationID: id, InstanceID: p.instance, TenantID: "contoso"}))
	p.managed.ran(t, at(health.Engine, health.Queue), id, "check of "+p.instance+" Succeeded", "check of "+p.instance+" Succeeded", "aggregate of "+p.instance+" Succeeded Succeeded")
	testenv.Until(t, "the report of the health", func() bool {
		document := testenv.Must(registry.New(p.publisher.tables, "").Get(t.Context(), p.instance))(t)
		var reported struct{ Status health.Status }
		found, err := document.Field("health", &reported)
		return err == nil && found && reported.Status == health.Degraded
	})
	p.spare(t)
}

// testAlerts: each side receives one alert.
func (p *pair) testAlerts(t *testing.T) {
	body, id := alert(t, "both")
	p.publisher.raise(t, p.publisher.alertsKey, body)
	p.managed.raise(t, p.managed.alertsKey, body)
	p.publisher.checkAlert(t, p.publisher.sink, id)
	p.managed.checkAlert(t, p.managed.sink, id)
}

// testAgreement compares the registries, the histories and the dead letters of both sides at rest.
func (p *pair) testAgreement(t *testing.T) {
	for name, side := range map[string]*platform{"publisher": p.publisher.platform, "managed application": p.managed.platform} {
		testenv.Until(t, "the rest of the "+name, func() bool {
			return len(side.list(t, "/api/workflow/outbox", url.Values{"status": {"pending"}})) == 0
		})
		if dead := side.list(t, "/api/dlq", url.Values{"status": {"Pending"}}); len(dead) > 0 {
			t.Errorf("dead letters of the %s: %v", name, dead)
		}
	}
	own, known := p.managed.unlocked(t, p.instance), p.unlockedAtPublisher(t)
	for _, of := range []registry.Instance{own, known} {
		if version, err := update.VersionOf(of); err != nil || version != "2.0.0" {
			t.Errorf("version %s, %v", version, err)
		}
	}
	// The publisher has a report of every update in the managed application's history, and of no other. A report that has
	// left the outbox is in the publisher's history once its queue has delivered it.
	updated := map[string]bool{}
	for _, row := range p.history(t, p.managed.platform, update.Engine, update.OperationProcess) {
		updated[fmt.Sprint(row["correlationId"])] = true
	}
	var reported map[string]bool
	testenv.Until(t, "as many reports as updates", func() bool {
		reported = p.finished(t)
		return len(reported) >= len(updated)
	})
	if diff := cmp.Diff(updated, reported); diff != "" || len(updated) != 2 {
		t.Errorf("updates (-managed application +publisher):\n%s", diff)
	}
	if now := [2]int{p.publisher.host.HandlerPID(), p.managed.host.HandlerPID()}; now[0] == p.pids[0] || now[1] == p.pids[1] {
		t.Errorf("a handler has lived through it all: %v, then %v", p.pids, now)
	}
	for name, side := range map[string]*platform{"publisher": p.publisher.platform, "managed application": p.managed.platform} {
		if n := side.seen(func(i localhost.Invocation) bool { return i.Violation() != nil }); n != 0 {
			t.Errorf("%s: %d violations of the host's contract", name, n)
		}
	}
}

// history returns a side's history of an operation of the instance.
func (p *pair) history(t *testing.T, side *platform, engine, operation string) []item {
	t.Helper()
	return side.list(t, "/api/history", url.Values{"engine": {engine}, "operation": {operation}, "instanceId": {p.instance}, "limit": {"100"}})
}

// finished returns the correlation ids of the updates whose end is in the publisher's history.
func (p *pair) finished(t *testing.T) map[string]bool {
	t.Helper()
	ids := map[string]bool{}
	for _, row := range p.history(t, p.publisher.platform, updatepublisher.Engine, updatepublisher.OperationReport) {
		entry := p.publisher.get(t, fmt.Sprintf("/api/history/%s/%s", updatepublisher.Engine, url.PathEscape(row["rowKey"].(string))))
		input := testenv.Must(json.Marshal(entry["input"]))(t)
		if in := decode[updatepublisher.ReportInput](t, input); in.Finished != nil {
			ids[in.Finished.CorrelationID] = true
		}
	}
	return ids
}

func (p *pair) unlockedAtPublisher(t *testing.T) registry.Instance {
	t.Helper()
	document, err := registry.New(p.publisher.tables, "").Get(t.Context(), p.instance)
	if err != nil || document.Lock.JobID != "" {
		t.Errorf("the publisher's document: lock %+v, %v", document.Lock, err)
	}
	return document
}
