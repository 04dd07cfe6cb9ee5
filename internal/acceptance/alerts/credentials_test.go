package alerts

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/vibedata/roundhouse/services/certificates"
	"github.com/vibedata/roundhouse/services/certificates/certificatestest"
	"github.com/vibedata/roundhouse/services/secrets"
)

// issue makes an authority issue a new version of the certificate.
func (w *world) issue(lifetime time.Duration) {
	w.t.Helper()
	vault := certificates.NewDevelopment(w.host.Tables)
	request, err := vault.Request(w.t.Context(), certificate, []string{"site.example"}, certificates.ECP256)
	if err != nil {
		w.t.Fatal(err)
	}
	chain := certificatestest.NewAuthority(w.t).Sign(w.t, request, time.Now(), time.Now().Add(lifetime))
	if _, err := vault.Merge(w.t.Context(), certificate, chain, nil); err != nil {
		w.t.Fatal(err)
	}
}

// credentialScenarios are those of expiring credentials and of undelivered keys.
func credentialScenarios() []scenario {
	return []scenario{
		{alert: "RoundhouseCredentialsExpiring", run: func(w *world) {
			w.issue(14*day + 30*time.Minute)
			w.well(20 * time.Minute)
			w.broken(2 * time.Hour)
			w.issue(90 * day)
			w.mended(30 * time.Minute)
		}},
		{alert: "RoundhouseCredentialsExpiringSoon", also: []string{"RoundhouseCredentialsExpiring"}, run: func(w *world) {
			w.issue(90 * day)
			w.well(20 * time.Minute)
			w.issue(2 * day)
			w.broken(90 * time.Minute)
			w.issue(90 * day)
			w.mended(30 * time.Minute)
		}},
		{alert: "RoundhouseCredentialsExpired", also: []string{"RoundhouseCredentialsExpiring", "RoundhouseCredentialsExpiringSoon"}, run: func(w *world) {
			w.issue(90 * day)
			w.well(20 * time.Minute)
			w.issue(time.Hour) // a certificate issued with too short a lifetime
			w.broken(2 * time.Hour)
			w.issue(90 * day)
			w.mended(30 * time.Minute)
		}},
		{alert: "RoundhouseCredentialsWaiting", every: 20 * time.Minute, run: func(w *world) {
			w.rotate("first")
			w.spend(20 * time.Minute)
			w.acknowledge()
			w.well(2 * day) // the grace of the first key
			w.rotate("second")
			w.broken(3 * day)
			w.acknowledge()
			w.mended(2 * day)
		}},
	}
}

// rotate rotates the key of an instance.
func (w *world) rotate(slot string) {
	w.t.Helper()
	w.host.Send("hmac-rotation-queue", fmt.Sprintf(`{"correlationId":%q,"operation":"rotate","instanceId":"i1","tenantId":"contoso","input":{"slot":%q}}`, slot, slot))
}

// acknowledge makes the gateway acknowledge the newest key.
func (w *world) acknowledge() {
	w.t.Helper()
	versions, err := secrets.NewDevelopment(w.host.Tables).Versions(w.t.Context(), secrets.Name("hmac", "i1"))
	if err != nil || len(versions) == 0 {
		w.t.Fatalf("%d versions, %v", len(versions), err)
	}
	body, err := json.Marshal(map[string]string{"engine": "hmac", "target": "i1", "consumer": "gateway", "version": versions[len(versions)-1].Version})
	if err != nil {
		w.t.Fatal(err)
	}
	w.do(http.MethodPost, "/api/acknowledgements", string(body))
}
