package year

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/engine/spn"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/services/secrets"
)

// consumer uses the credentials that it received last.
type consumer struct {
	queue string
	using map[string]credential // by secret
}

func newConsumer(queue string) *consumer {
	return &consumer{queue: queue, using: map[string]credential{}}
}

// credential is a credential in use.
type credential struct {
	secret, version string
	keyID           string // of a password
	order, heard    time.Time
}

// cloudEvent is an event as a queue destination sends it.
type cloudEvent[T any] struct {
	ID   string `json:"id"`
	Type string `json:"type"`
	Data T      `json:"data"`
}

// listen receives the events that have arrived.
func (c *consumer) listen(t testing.TB, s *site) {
	t.Helper()
	for _, body := range take(t, s, c.queue) {
		c.hear(t, body)
	}
}

func (c *consumer) hear(t testing.TB, body []byte) {
	t.Helper()
	switch kind := decode[cloudEvent[any]](t, body).Type; kind {
	case hmac.EventRotated:
		e := decode[cloudEvent[hmac.NotifyOutput]](t, body).Data
		c.use(credential{secret: e.SecretName, version: e.Version, order: e.ActiveAtUtc, heard: time.Now()})
	case spn.EventRotated:
		e := decode[cloudEvent[spn.Rotated]](t, body).Data
		c.use(credential{secret: e.SecretName, version: e.Version, keyID: e.KeyID, order: e.CreatedAtUtc, heard: time.Now()})
	}
}

// use adopts a version, unless the consumer has a later one: retried events arrive in any order.
func (c *consumer) use(next credential) {
	if !next.order.Before(c.using[next.secret].order) {
		c.using[next.secret] = next
	}
}

// slow is a consumer that takes hours or days to adopt a version, and acknowledges it then.
type slow struct {
	random *rand.Rand
	// first receives everything immediately; slow reads from it.
	first  *consumer
	uses   consumer
	next   credential
	takes  time.Time
	secret string
}

// step adopts the announced version when its time has come, and only then acknowledges it.
func (s *slow) step(t testing.TB, publisher *site) {
	t.Helper()
	now := time.Now()
	heard, ok := s.first.using[s.secret]
	switch {
	case !ok:
	case s.next == (credential{}) && heard.version != s.uses.using[s.secret].version:
		s.next, s.takes = heard, now.Add(time.Duration(s.random.ExpFloat64()*float64(12*time.Hour)))
	case s.next != (credential{}) && !now.Before(s.takes):
		s.uses.using[s.secret] = s.next
		body := fmt.Sprintf(`{"engine":"hmac","target":%q,"version":%q,"consumer":%q}`, slowKey, s.next.version, slowConsumer)
		if publisher.outages.down(publisherHost) {
			return // it retries when the app is back
		}
		if status, answer := publisher.Do(http.MethodPost, "/api/acknowledgements", body); status/100 != 2 {
			t.Errorf("the acknowledgement of %s: %d %s", slowConsumer, status, answer)
		}
		s.next = credential{}
	}
}

// check makes sure that the consumer's credentials work.
func (c *consumer) check(t testing.TB, o *outside, vault secrets.Store) {
	t.Helper()
	for _, used := range c.using {
		versions := testenv.Must(vault.Versions(t.Context(), used.secret))(t)
		found := false
		for _, v := range versions {
			found = found || v.Version == used.version && v.Enabled
		}
		if !found {
			t.Fatalf("%s: version %s of %s is retired, and its consumer uses it since %s", time.Now(), used.version, used.secret, used.heard)
		}
		if used.keyID == "" {
			continue
		}
		if _, there := o.graph.Live(applications[0])[used.keyID]; !there {
			t.Fatalf("%s: password %s is removed, and its consumer uses it since %s", time.Now(), used.keyID, used.heard)
		}
	}
}

// checkVersions makes sure that the latest version of a secret is not older than the rotation interval, and that at
// most two earlier ones remain: one in its grace, and one that was just replaced.
func checkVersions(t testing.TB, vault secrets.Store, secret string, apart time.Duration) {
	t.Helper()
	versions, err := vault.Versions(t.Context(), secret)
	if err != nil || len(versions) == 0 {
		t.Fatalf("%s has %d versions, %v", secret, len(versions), err)
	}
	enabled := 0
	for _, v := range versions {
		if v.Enabled {
			enabled++
		}
	}
	if latest := versions[len(versions)-1]; time.Since(latest.Created) > apart || !latest.Enabled || enabled > 3 {
		t.Errorf("the latest version of %s is from %s, and %d are enabled", secret, latest.Created, enabled)
	}
}
