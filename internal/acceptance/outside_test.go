package acceptance

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	enginetls "github.com/vibedata/roundhouse/engine/tls"
	"github.com/vibedata/roundhouse/internal/appservice"
	"github.com/vibedata/roundhouse/internal/graphfake"
	"github.com/vibedata/roundhouse/internal/marketplacefake"
	"github.com/vibedata/roundhouse/internal/pebble"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/internal/tlstarget"
	"github.com/vibedata/roundhouse/services/entra"
)

const (
	// ourApplication is the offer's application, the audience of webhooks' tokens.
	ourApplication = "3f0e8f6e-58a5-4b0e-8d14-6a3f2b9d1c77"
	// signingSecret is the name of the vault's secret that signs events.
	signingSecret = "sink-key"
	// blockedDomain gets no certificate.
	blockedDomain = "blocked.example"
	// rotatedDomain also has its certificate renewed on schedule.
	rotatedDomain = "www.acceptance.example"
)

// outside is all services that the publisher's engines use, on the wire.
type outside struct {
	vault        vault
	graph        *graphfake.Server
	login        *entra.Login
	graphURL     string
	market       *marketplacefake.Market
	marketURL    string
	issuer       *marketplacefake.Issuer
	authority    *pebble.Server
	target       *tlstarget.Target
	sink         *sink
	identity     *appservice.Server
	application  string // the application whose secret the spn engine rotates
	signature    string // signature of managed applications' notifications
	alertsKey    string
	signingKey   string
	bearerTokens []string // tokens of webhooks
}

// newOutside starts all services; the vault belongs to the coming platform.
func newOutside(t *testing.T, v vault) *outside {
	t.Helper()
	o := &outside{vault: v, graph: graphfake.New(), market: marketplacefake.New(), issuer: marketplacefake.NewTLSIssuer(t, uuid.NewString()),
		authority: pebble.Start(t, pebble.Options{Blocked: []string{blockedDomain}}), sink: newSink(t), application: uuid.NewString(),
		signature: rand.Text(), alertsKey: rand.Text(), signingKey: rand.Text()}
	// A new password is listed late, and accepted even later.
	o.graph.ListedAfter, o.graph.AcceptedAfter = 200*time.Millisecond, time.Second
	o.graph.AddApplication(o.application)
	graphURL, options := o.graph.Start(t)
	o.graphURL, o.marketURL = graphURL, o.market.Serve(t).URL
	o.identity = appservice.Start(t, o.graph.Tokens(), o.market.Tokens(), v.tokens)
	o.target = tlstarget.Start(t, v.keyPair)
	var err1, err2 error
	o.login, err1 = entra.NewLogin(graphURL, graphfake.Tenant, graphURL, options)
	_, err2 = v.Add(t.Context(), signingSecret, []byte("whsec_"+base64.StdEncoding.EncodeToString([]byte(o.signingKey))), nil)
	testenv.OK(t, errors.Join(err1, err2))
	return o
}

// environment directs the handler to the services, as the settings of production do.
func (o *outside) environment(t *testing.T) []string {
	t.Helper()
	targets, err1 := json.Marshal(enginetls.StaticTargets{{ID: "gateway", Address: o.target.Address(), NotifyURL: o.target.NotifyURL()}})
	rotations, err2 := json.Marshal(map[string]any{
		"hmac": []any{map[string]string{"instanceId": "instance-scheduled"}},
		"spn":  []any{map[string]string{"applicationId": o.application}},
		"tls":  []any{map[string]any{"domains": []string{rotatedDomain}}},
	})
	testenv.OK(t, errors.Join(err1, err2))
	signed := `"signingKeys":[{"id":"k1","secret":"` + signingSecret + `"}],"allow"`
	return slices.Concat(o.vault.env, o.identity.Environment(t, o.authority.RootPEM(), o.vault.authority), []string{
		"ROUNDHOUSE_LOG_LEVEL=debug",
		"ROUNDHOUSE_ROTATIONS=" + string(rotations),
		"ROUNDHOUSE_OUTBOX=" + strings.Replace(o.sink.document(), `"allow"`, signed, 1),
		"ROUNDHOUSE_SPN_TENANT=" + graphfake.Tenant, "ROUNDHOUSE_SPN_GRAPH_URL=" + o.graphURL, "ROUNDHOUSE_SPN_LOGIN_URL=" + o.graphURL,
		"ROUNDHOUSE_SPN_OVERLAP=1s", "ROUNDHOUSE_SPN_REMOVE_AFTER=1s",
		"ROUNDHOUSE_ACME_DIRECTORY=" + o.authority.Directory(), "ROUNDHOUSE_TLS_TARGETS=" + string(targets),
		"ROUNDHOUSE_MARKETPLACE_TENANT=" + o.issuer.Tenant, "ROUNDHOUSE_MARKETPLACE_APP_ID=" + ourApplication,
		"ROUNDHOUSE_MARKETPLACE_URL=" + o.marketURL + "/api", "ROUNDHOUSE_MANAGEMENT_URL=" + o.marketURL,
		"ROUNDHOUSE_INTAKE_LOGIN_URL=" + o.issuer.Authority(), "ROUNDHOUSE_MANAGED_APP_SIGNATURE=" + o.signature,
		"ROUNDHOUSE_ALERTS_KEY=" + o.alertsKey, "ROUNDHOUSE_ALERT_RULES=" + alertRules,
		"ROUNDHOUSE_UPDATE_RELEASES=" + releases,
	})
}

// challenges makes the authority find the platform's answers to its challenges, as the proxy in front of a domain does.
func (o *outside) challenges(p *platform) {
	o.authority.Challenges = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := strings.Replace(r.URL.Path, "/.well-known/acme-challenge/", "/api/acme-challenge/", 1)
		http.Redirect(w, r, p.host.URL()+path, http.StatusFound)
	})
}

// secrets returns their secrets that are not in the vault.
func (o *outside) secrets() [][]byte {
	texts := append(o.graph.Values(), o.identity.Secrets()...)
	texts = append(texts, graphfake.LoginToken, o.signature, o.alertsKey)
	for _, token := range o.bearerTokens {
		texts = append(texts, token[strings.LastIndex(token, ".")+1:]) // the signature: the token is useless without it
	}
	var values [][]byte
	for _, text := range texts {
		values = append(values, []byte(text))
	}
	return values
}

// heard returns the public data that they received.
func (o *outside) heard(t *testing.T) []byte {
	t.Helper()
	all := bytes.NewBuffer(o.sink.heard())
	testenv.OK(t, json.NewEncoder(all).Encode(o.target.Told()))
	return all.Bytes()
}
