package acceptance

import (
	"flag"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/engine/update"
	"github.com/vibedata/roundhouse/internal/testenv"
)

var updateRounds = flag.Int("update.rounds", 20, "how many instances TestUpdates sends two updates to at once")

// TestUpdates lets several handlers run the updates of instances, and kills them. The lock lasts for an hour, so no
// lock expires.
func TestUpdates(t *testing.T) {
	testenv.Long(t)
	t.Parallel() // has its own storage
	c := startCluster(t)
	t.Run("two at once", c.testTwoAtOnce)
	t.Run("a death in the middle", c.testDeathInTheMiddle)
	c.obeyed(t)
}

// newUpgrade returns an update of the component that all updates share, and of another one.
func newUpgrade(instance, name string) upgrade {
	return upgrade{instance: instance, id: uuid.NewString(), version: "of-" + name,
		targets: []update.Target{{Name: "shared", Version: name}, {Name: "own-" + name, Version: "1"}}}
}

// testTwoAtOnce sends two updates for each of many instances. They run one after the other, and the registry has the
// writes of both.
func (c *cluster) testTwoAtOnce(t *testing.T) {
	var pairs [][2]upgrade
	var all []upgrade
	for pair := range *updateRounds {
		instance := fmt.Sprintf("both-%d", pair)
		c.create(t, instance)
		pairs = append(pairs, [2]upgrade{newUpgrade(instance, "a"), newUpgrade(instance, "b")})
	}
	// The messages that a process receives together are updates of different instances, so that their second updates go to
	// another process.
	for some := range slices.Chunk(pairs, batchSize) {
		for n := range 2 {
			for _, pair := range some {
				all = append(all, pair[n])
			}
		}
	}
	began := time.Now()
	first := pairs[0]
	gate := c.hold(t, first[0].instance)
	c.send(t, all...)
	// Block one update of the first pair in the middle, so that the other meets it in another process.
	holder := <-gate.came
	testenv.Until(t, "the meeting of the first pair", func() bool {
		for host, byID := range c.fates(t) {
			if host != holder && slices.Contains(slices.Concat(byID[first[0].id], byID[first[1].id]), engine.Conflicting) {
				return true
			}
		}
		return false
	})
	gate.open()
	var writes int64
	for _, pair := range pairs {
		for _, u := range pair {
			c.succeeded(t, u)
		}
		writes += c.checkPair(t, pair)
	}
	took := time.Since(began)
	met, apart := c.encounters(t, pairs)
	if met == 0 || apart == 0 {
		t.Errorf("of %d pairs, %d got in each other's way, %d of them in different processes: nothing is shown", len(pairs), met, apart)
	}
	t.Logf("%d rounds, %d processes: %d conflicts, %d of them between processes; %d writes of the registry, none lost; %.1f s",
		len(pairs), clusterSize, met, apart, writes, took.Seconds())
}

// checkPair checks the results of two updates of an instance, and returns the number of writes of the registry.
func (c *cluster) checkPair(t *testing.T, pair [2]upgrade) int64 {
	t.Helper()
	instance, got := pair[0].instance, c.requested(pair[0].instance)
	if !slices.Equal(got[:min(2, len(got))], pair[0].requests()) {
		pair[0], pair[1] = pair[1], pair[0]
	}
	if want := slices.Concat(pair[0].requests(), pair[1].requests()); !slices.Equal(got, want) {
		t.Errorf("the components of %s were asked for %q, want one update after the other: %q", instance, got, want)
	}
	i := c.registered(t, instance, pair[0], pair[1])
	// Each acquires the lock, records its target, its plan, its components and its end, and releases the lock; the first
	// version is Create's.
	if want := int64(1 + 2*(5+len(pair[0].targets))); i.Version != want {
		t.Errorf("instance %s has version %d, want %d: each write is one", instance, i.Version, want)
	}
	// Both updates are runs of the instance's orchestration.
	want := []string{"history", "orchestration " + update.Engine + "-" + instance}
	for n := range pair {
		if got := slices.Compact(slices.Sorted(slices.Values(c.timeline(t, pair[n].id)))); !slices.Equal(got, want) {
			t.Errorf("the timeline of update %d of %s: %q, want %q", n, instance, got, want)
		}
	}
	return i.Version
}

// encounters counts the pairs in which one update met the other, and those that met in different processes.
func (c *cluster) encounters(t *testing.T, pairs [][2]upgrade) (met, apart int) {
	t.Helper()
	fates := c.fates(t)
	for _, pair := range pairs {
		together, separate := false, false
		for n, u := range pair {
			for _, byID := range fates {
				if slices.Contains(byID[u.id], engine.Conflicting) {
					together = true
					separate = separate || !slices.Contains(byID[pair[1-n].id], engine.Succeeded)
				}
			}
		}
		if together {
			met++
		}
		if separate {
			apart++
		}
	}
	return met, apart
}

// testDeathInTheMiddle kills the process that holds the lock. The run continues elsewhere and releases the lock long
// before it expires; no component request is repeated.
func (c *cluster) testDeathInTheMiddle(t *testing.T) {
	for name, tt := range map[string]struct {
		request int
		moment  moment
	}{
		"before it knows the components":   {1, before},
		"a component was not asked":        {4, before},
		"a component was asked":            {4, after},
		"a component was looked at":        {5, after},
		"the second component was asked":   {8, after},
		"the last look at the last of all": {10, after},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUpgrade("dies-"+uuid.NewString(), "a")
			c.create(t, u.instance)
			killed := make(chan registry.Lock, 1)
			c.onRequest(u.instance, c.killOn(t, tt.request, tt.moment, u.instance, func(l registry.Lock) { killed <- l }))
			c.send(t, u)
			c.succeeded(t, u)
			select {
			case l := <-killed:
				if l.JobID != u.job() || time.Until(l.Until) < registry.DefaultLockDuration/2 {
					t.Errorf("the lock was held by %q until %v when the process died", l.JobID, l.Until)
				}
			default:
				t.Fatalf("the update ended before its request %d", tt.request)
			}
			c.registered(t, u.instance, u)
			if got := c.requested(u.instance); !slices.Equal(got, u.requests()) {
				t.Errorf("the components were asked for %q, want %q", got, u.requests())
			}
		})
	}
}

// TestUpdateIsForgotten kills the process that holds the lock, and deletes the orchestration that could release it. The
// next update waits until the lock expires.
func TestUpdateIsForgotten(t *testing.T) {
	testenv.Long(t)
	t.Parallel() // has its own storage
	// Long enough for the next update to arrive while the lock is held.
	c := startCluster(t, "ROUNDHOUSE_UPDATE_LOCK_DURATION=10s",
		// The message of the dead update is not redelivered.
		"AzureFunctionsJobHost__extensions__queues__visibilityTimeout=01:00:00")
	instance := "forgotten-" + uuid.NewString()
	c.create(t, instance)
	lost, next := newUpgrade(instance, "a"), newUpgrade(instance, "b")
	killed := make(chan registry.Lock, 1)
	c.onRequest(instance, c.killOn(t, 4, after, instance, func(l registry.Lock) { killed <- l }))
	c.send(t, lost)
	left := testenv.Receive(t, "the request of the update", killed)
	if left.JobID != lost.job() {
		t.Fatalf("the process that died did not hold the lock, but %q", left.JobID)
	}
	c.forget(t, update.Engine+"-"+instance)
	first := make(chan registry.Lock, 1)
	var came time.Time
	c.onRequest(instance, func(int, *http.Request) moment {
		if came.IsZero() {
			came = time.Now()
			i, err := c.registry.Get(t.Context(), instance)
			if err != nil {
				t.Errorf("the registry: %v", err)
			}
			first <- i.Lock
		}
		return ""
	})
	c.send(t, next)
	c.succeeded(t, next)
	if l := <-first; l.JobID != next.job() || came.Before(left.Until) {
		t.Errorf("the next update began at %v under the lock of %q; the one before was to hold it until %v", came, l.JobID, left.Until)
	}
	c.registered(t, instance, next)
	if want := append(lost.requests()[:1], next.requests()...); !slices.Equal(c.requested(instance), want) {
		t.Errorf("the components were asked for %q, want %q", c.requested(instance), want)
	}
	waited := 0
	for _, byID := range c.fates(t) {
		for _, f := range byID[next.id] {
			if f == engine.Conflicting {
				waited++
			}
		}
	}
	if waited == 0 {
		t.Error("the next update did not wait in its queue")
	}
	c.obeyed(t)
}
