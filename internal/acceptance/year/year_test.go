package year

import (
	"flag"
	"iter"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/engine/health"
	"github.com/vibedata/roundhouse/engine/health/healthtest"
	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/engine/release"
	"github.com/vibedata/roundhouse/engine/spn"
	"github.com/vibedata/roundhouse/internal/sample"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/services/secrets"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var seeds = flag.Int("seeds", 1, "how many years are simulated")

const (
	day = 24 * time.Hour
	// step is the pause of the hosts between two rounds of timers and messages.
	step = 30 * time.Minute
)

// longest returns the longest outages of the parts.
func longest() map[part]time.Duration {
	return map[part]time.Duration{
		vault: 4 * day, directory: 6 * day, authority: 12 * day, components: 2 * day, tlsTarget: 10 * day,
		publisherHost: 3 * day, managedHost: 3 * day, receiverOf("receiver-keys"): 15 * day, receiverOf("receiver-passwords"): 20 * day, receiverOf("receiver-instances"): 10 * day,
	}
}

// TestYear runs both apps for a year, or for a sampled number of days, at least 45.
func TestYear(t *testing.T) {
	testenv.Long(t) // its clock is virtual, but it takes minutes
	t.Parallel()
	span := time.Duration(sample.Size(t, 365, 45)) * day
	for seed := range *seeds {
		target := listen(t)
		synctest.Test(t, func(t *testing.T) { runYear(t, uint64(seed), span, target) })
	}
}

// publisherOutbox sends events to the queues of their receivers.
const publisherOutbox = `{"destinations":{"keys":{"queue":{"queue":"receiver-keys"}},"passwords":{"queue":{"queue":"receiver-passwords"}},"instances":{"queue":{"queue":"receiver-instances"}},"rest":{"log":{}}},
	"routes":[{"eventType":"provisioning.*","destination":"instances"},{"eventType":"update.*","destination":"instances"},{"eventType":"hmac.*","destination":"keys"},{"eventType":"spn.*","destination":"passwords"},{"eventType":"*","destination":"rest"}]}`

// world is both apps with all services.
type world struct {
	*outside
	begin              time.Time
	publisher, managed *site
	operator           *person
	keys, passwords    *consumer
	late               *slow
	buyers             *customers
	program            *releases
	alarms             *monitor
}

func newWorld(t *testing.T, seed uint64, span time.Duration, target *target) *world {
	t.Helper()
	random, begin := rand.New(rand.NewPCG(seed, 17)), time.Now()
	w := &world{outside: newOutside(t, drawOutages(random, begin.Add(2*day), begin.Add(span), longest()), target), begin: begin,
		operator: &person{letters: map[string]bool{}, asked: map[string]bool{}},
		keys:     newConsumer("receiver-keys"), passwords: newConsumer("receiver-passwords"),
		program: &releases{random: random, next: begin}, alarms: &monitor{random: random, next: begin}}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d\n%s", seed, w.outages)
		}
	})
	w.graph.AddApplication(applications[0])
	w.publisher = newSite(t, w.outside, publisherHost, w.publisherEngines, map[string]string{"ROUNDHOUSE_OUTBOX": publisherOutbox})
	w.managed = newSite(t, w.outside, managedHost, w.managedEngines, map[string]string{})
	w.late = &slow{random: random, first: w.keys, uses: *newConsumer(""), secret: secrets.Name(hmac.Engine, slowKey)}
	w.buyers = &customers{outside: w.outside, random: random, buys: begin}
	w.buyers.notify = func(n release.Notice, id string) {
		if n.InstanceID == w.buyers.bought[0] {
			forward(t, w.managed, n, id)
		}
	}
	if _, err := registry.New(w.managed.Tables, "").Create(t.Context(), registry.Instance{InstanceID: home, TenantID: tenant}); err != nil {
		t.Fatal(err)
	}
	for _, component := range []string{"db", "web"} {
		w.updates.Install(home, component, "0")
		w.patients.Set(home, component, healthtest.Pass())
	}
	return w
}

// step is half an hour of work.
func (w *world) step(t *testing.T, now time.Time) {
	t.Helper()
	w.publisher.step()
	w.managed.step()
	w.buyers.step(t, w.publisher)
	w.program.step(w.publisher)
	w.alarms.step(w.managed)
	w.keys.listen(t, w.publisher)
	w.passwords.listen(t, w.publisher)
	w.late.step(t, w.publisher)
	if now.Sub(w.begin)%(2*time.Hour) < step {
		for _, c := range []*consumer{w.keys, w.passwords, &w.late.uses} {
			c.check(t, w.outside, secrets.NewDevelopment(w.publisher.Tables))
		}
	}
	if served := w.target.now(); served.Version != "" && now.After(served.NotAfterUtc) {
		t.Fatalf("%s: the certificate has expired at %s", now, served.NotAfterUtc)
	}
	if now.Sub(w.begin)%day < step {
		w.operator.look(t, w.publisher)
		w.operator.look(t, w.managed)
	}
}

// check checks the end: no work waits, everything is up to date, and nothing superfluous exists.
func (w *world) check(t *testing.T) {
	t.Helper()
	w.operator.checkSeen(t, w.outages)
	w.operator.checkDone(t, w.publisher)
	w.operator.checkDone(t, w.managed)
	w.buyers.check(t, w.publisher)
	w.program.check(t, w.managed)
	w.alarms.check(t, w.managed)
	vault := secrets.NewDevelopment(w.publisher.Tables)
	for secret, most := range map[string]time.Duration{secrets.Name(hmac.Engine, quickKey): 2 * day, secrets.Name(hmac.Engine, slowKey): 2 * day, secrets.Name(spn.Engine, applications[0]): 8 * day} {
		checkVersions(t, vault, secret, most)
	}
	if live := w.graph.Live(applications[0]); len(live) > 3 {
		t.Errorf("%d passwords are left: the one in use, the one before, and the one whose removal is due are all that may be", len(live))
	}
	if served := w.target.now(); time.Until(served.NotAfterUtc) < lifetime/4 {
		t.Errorf("the certificate that is served ends at %s", served.NotAfterUtc)
	}
	document := testenv.Must(registry.New(w.managed.Tables, "").Get(t.Context(), home))(t)
	if summary, _, err := health.SummaryOf(document); err != nil || time.Since(summary.CheckedAtUtc) > day || summary.Status != health.Healthy {
		t.Errorf("the last check is %+v, %v", summary, err)
	}
	t.Logf("%d dead letters, %d tasks; %d instances, version %s", len(w.operator.letters), len(w.operator.asked), len(w.buyers.bought), w.program.version())
}

func runYear(t *testing.T, seed uint64, span time.Duration, target *target) {
	w := newWorld(t, seed, span, target)
	for now := range times(w.begin, w.begin.Add(span+40*day)) {
		w.step(t, now)
	}
	w.check(t)
}

// times returns the times of the steps. The hosts' own work takes time, too.
func times(from, to time.Time) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		for next := from; ; {
			now := time.Now()
			if !now.Before(to) || !yield(now) {
				return
			}
			for !next.After(time.Now()) {
				next = next.Add(step)
			}
			time.Sleep(time.Until(next))
		}
	}
}
