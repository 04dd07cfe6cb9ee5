package acceptance

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/spn"
	enginetls "github.com/vibedata/roundhouse/engine/tls"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/services/entra"
	"github.com/vibedata/roundhouse/services/secrets"
)

// world is a platform of the publisher with all services that its engines use.
type world struct {
	*platform
	*outside
	canary string // of the search for secrets
}

// TestPublisher drives every engine of the publisher from its incoming messages to the history, the outside effect and
// the dead letters; those of hmac are in TestPlatform. Then it searches all stored, logged, returned and sent data for
// secrets.
func TestPublisher(t *testing.T) {
	testenv.Long(t)
	t.Parallel() // has its own storage
	s := beginSearch(t, 12)
	w := newWorld(t, s, developmentVault(t, s.server.Account()))
	t.Run("hmac", w.testRotation)
	t.Run("hmac, schedule", w.testSchedule)
	t.Run("hmac, deaths", w.testDeaths)
	t.Run("spn", w.testSPN)
	t.Run("spn, dead", w.testSPNDead)
	t.Run("tls", w.testTLS)
	t.Run("tls, dead", w.testTLSDead)
	t.Run("tls, revoked", w.testTLSRevoked)
	t.Run("webhook", w.testWebhook)
	t.Run("webhook, dead", w.testWebhookDead)
	t.Run("notification", w.testNotification)
	t.Run("notification, dead", w.testNotificationDead)
	t.Run("releases", w.testReleases)
	t.Run("releases, dead", w.testReleasesDead)
	t.Run("alert", w.testAlert)
	t.Run("large alert", w.testLargeAlert)
	t.Run("large alert, dead", w.testLargeAlertDead)
	w.collect(t, s)
}

// newWorld starts the platform and the services, on the storage that will be searched.
func newWorld(t *testing.T, s *search, v vault) *world {
	t.Helper()
	o := newOutside(t, v)
	w := &world{startWith(t, setup{account: s.server.Account(), env: o.environment(t), vault: v, hostLog: s.hostLog}), o, s.bird()}
	o.challenges(w.platform)
	return w
}

// collect collects the data for the search at the end of the test.
func (w *world) collect(t *testing.T, s *search, more ...[]byte) {
	t.Helper()
	s.collect(t, w.platform, append(w.secrets(), more...), w.heard(t))
}

func decode[T any](t *testing.T, document []byte) (v T) {
	t.Helper()
	if err := json.Unmarshal(document, &v); err != nil {
		t.Fatalf("%v: %s", err, document)
	}
	return v
}

// testSPN rotates the secret of an application twice, by a message and on schedule.
func (w *world) testSPN(t *testing.T) {
	e := at(spn.Engine, spn.Queue)
	byHand := w.graph.Add(w.application, "by hand")
	id := uuid.NewString()
	w.send(t, spn.Queue, e.message(t, engine.Message{CorrelationID: id, TenantID: "contoso", Input: fmt.Appendf(nil, `{"applicationId":%q,"slot":"first"}`, w.application)}))
	first := w.checkSecret(t, w.ran(t, e, id, "rotate of publisher Succeeded Succeeded"), "contoso")
	w.runByHand(t, spn.Engine, `{"all":true}`)
	known := url.Values{"engine": {spn.Engine}, "operation": {spn.OperationRotate}}
	testenv.Until(t, "the second rotation", func() bool { return len(w.list(t, "/api/history", known)) > 1 })
	id = fmt.Sprint(w.list(t, "/api/history", known)[0]["correlationId"])
	second := w.checkSecret(t, w.ran(t, e, id, "rotate of publisher Succeeded Succeeded"), engine.PublisherInstance)

	want := []string{byHand, second.KeyID}
	slices.Sort(want)
	testenv.Equal(t, "passwords in the directory", want, slices.Sorted(maps.Keys(w.graph.Live(w.application))))
	if _, err := w.outside.vault.Value(t.Context(), first.SecretName, first.Version); !errors.Is(err, secrets.ErrForbidden) {
		t.Errorf("the first version: %v, want that it is disabled", err)
	}
}

// checkSecret checks that the secret of a rotation is the recorded one, and that the login accepts it.
func (w *world) checkSecret(t *testing.T, entries []engine.Entry, tenant string) spn.RotateOutput {
	t.Helper()
	out := decode[spn.RotateOutput](t, entries[0].Output)
	value, err := w.outside.vault.Value(t.Context(), out.SecretName, out.Version)
	if err == nil {
		err = w.login.Try(t.Context(), w.application, value)
	}
	if err != nil {
		t.Errorf("the login: %v", err)
	}
	if err := w.login.Try(t.Context(), w.application, append(value, '.')); !errors.Is(err, entra.ErrNotAccepted) {
		t.Errorf("the login takes anything: %v", err)
	}
	events := w.sink.told(t, spn.EventRotated, entries[0].CorrelationID)
	if event := decode[spn.Rotated](t, events[0].Body); len(events) != 1 || events[0].Tenant != tenant || event.KeyID != out.KeyID || event.Version != out.Version {
		t.Errorf("%d events, the first for %s: %+v", len(events), events[0].Tenant, event)
	}
	return out
}

// testSPNDead: the login never accepts the secret of a disabled application.
func (w *world) testSPNDead(t *testing.T) {
	e, id, application := at(spn.Engine, spn.Queue), uuid.NewString(), uuid.NewString()
	w.graph.AddApplication(application)
	w.graph.Disable(application)
	body := e.message(t, engine.Message{CorrelationID: id, Input: fmt.Appendf(nil, `{"applicationId":%q}`, application)})
	w.send(t, spn.Queue, body)
	w.buried(t, grave{entrance: e, correlationID: id, body: body, reason: "AADSTS7000112", count: 1})
	w.checkHistory(t, e, id, w.rests(t, e, id), []string{"rotate of publisher Succeeded", "rotate of publisher Failed Failed"})
	if n := len(w.graph.Live(application)); n != 1 {
		t.Errorf("%d passwords", n)
	}
}

// testTLS has a certificate issued and served; the schedule then finds it not due.
func (w *world) testTLS(t *testing.T) {
	e, id := at(enginetls.Engine, enginetls.Queue), uuid.NewString()
	body := e.message(t, engine.Message{CorrelationID: id, Operation: enginetls.OperationRenew, Input: fmt.Appendf(nil, `{"domains":[%q]}`, rotatedDomain)})
	w.send(t, enginetls.Queue, body)
	entries := w.ran(t, e, id, "renew of publisher Succeeded", "distribute of publisher Succeeded Succeeded")
	made := decode[enginetls.RenewOutput](t, entries[0].Output)
	w.checkServed(t, made.Certificate.Serial)
	w.runByHand(t, enginetls.Engine, `{"all":true}`)
	known := url.Values{"engine": {enginetls.Engine}, "operation": {enginetls.OperationRenew}}
	testenv.Until(t, "the second look", func() bool { return len(w.list(t, "/api/history", known)) > 1 })
	id = fmt.Sprint(w.list(t, "/api/history", known)[0]["correlationId"])
	entries = w.ran(t, e, id, "renew of publisher Succeeded", "distribute of publisher Succeeded Succeeded")
	if again := decode[enginetls.RenewOutput](t, entries[0].Output); again.Renewed || again.Note == "" || len(w.target.Told()) != 1 {
		t.Errorf("the schedule: %+v, the target was told %d times", again, len(w.target.Told()))
	}
}

// testTLSRevoked: a served certificate is replaced, and then revoked.
func (w *world) testTLSRevoked(t *testing.T) {
	e, id := at(enginetls.Engine, enginetls.Queue), uuid.NewString()
	told := w.target.Told()
	pair, err := w.outside.vault.keyPair(enginetls.CertificateName([]string{rotatedDomain}), fmt.Sprint(told[len(told)-1]["version"]))
	if err != nil {
		t.Fatal(err)
	}
	w.send(t, enginetls.Queue, e.message(t, engine.Message{CorrelationID: id, Operation: enginetls.OperationRevoke,
		Input: fmt.Appendf(nil, `{"domain":%q,"all":true,"reason":"superseded"}`, rotatedDomain)}))
	entries := w.ran(t, e, id, "renew of publisher Succeeded", "distribute of publisher Succeeded", "revoke of publisher Succeeded Succeeded")
	made := decode[enginetls.RenewOutput](t, entries[0].Output)
	w.checkServed(t, made.Certificate.Serial)
	if !made.Renewed || !w.authority.Revoked(t, pair.Certificate[0]) {
		t.Errorf("what was served before is not revoked: %+v", made)
	}
}

// checkServed makes a handshake as a client of the domain.
func (w *world) checkServed(t *testing.T, serial string) {
	t.Helper()
	dialer := tls.Dialer{Config: &tls.Config{RootCAs: w.authority.Roots(), ServerName: rotatedDomain, MinVersion: tls.VersionTLS12}}
	conn := testenv.Must(dialer.DialContext(testenv.Context(t), "tcp", w.target.Address()))(t)
	defer conn.Close()
	var leaf *x509.Certificate
	if secure, ok := conn.(*tls.Conn); ok {
		leaf = secure.ConnectionState().PeerCertificates[0]
	}
	if leaf == nil || leaf.SerialNumber.Text(16) != serial {
		t.Errorf("another certificate is served: %v", leaf)
	}
}

// testTLSDead: the authority issues nothing for a domain.
func (w *world) testTLSDead(t *testing.T) {
	e, id := at(enginetls.Engine, enginetls.Queue), uuid.NewString()
	body := e.message(t, engine.Message{CorrelationID: id, Input: fmt.Appendf(nil, `{"domains":[%q]}`, blockedDomain)})
	w.send(t, enginetls.Queue, body)
	w.buried(t, grave{entrance: e, correlationID: id, body: body, reason: "refused by the certificate authority", count: 1})
	w.checkHistory(t, e, id, w.rests(t, e, id), []string{"renew of publisher Failed Failed"})
}
