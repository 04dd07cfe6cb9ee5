package tls_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/engine/tls"
	"github.com/vibedata/roundhouse/internal/pebble"
	"github.com/vibedata/roundhouse/internal/sample"
	"github.com/vibedata/roundhouse/services/certificates"
)

// history records the events of one certificate, next to the engine.
type history struct {
	*world
	rand *rand.Rand
	at   time.Time
	jobs int
	down [4]bool
	// listed are the targets on the list, and the version that each has served since it was listed.
	listed  [4]bool
	serving [4]string
	// arrived is when all listed targets were first seen to serve a version.
	arrived map[string]time.Time
	order   []string // versions, oldest first
}

// In any order of renewals, outages, list changes and crashes, no version is disabled that a listed target serves,
// nor before its successor had arrived everywhere for an overlap.
func TestNothingIsRetiredBeforeArrival(t *testing.T) {
	t.Parallel()
	const histories = 12
	var retired atomic.Int32
	seeds := sample.Seeds(t, histories)
	t.Cleanup(func() {
		if !testing.Short() && len(seeds) == histories && retired.Load() < histories {
			t.Errorf("%d versions were retired: the histories are too short to tell", retired.Load())
		}
	})
	for _, seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			h := &history{world: newWorld(t, pebble.Options{Validity: 10 * 365 * day}, 4), rand: rand.New(rand.NewPCG(uint64(seed), 0)), at: time.Now(), arrived: map[string]time.Time{}}
			h.now, h.vault.Now = func() time.Time { return h.at }, func() time.Time { return h.at }
			h.listed = [4]bool{true, true}
			disabled := 0
			for range 40 {
				h.step(t)
				disabled = h.check(t)
			}
			retired.Add(int32(disabled))
		})
	}
}

// step makes a random change.
func (h *history) step(t *testing.T) {
	t.Helper()
	i := h.rand.IntN(4)
	switch h.rand.IntN(8) {
	case 0:
		h.listed[i] = !h.listed[i]
		h.serving[i] = ""
	case 1:
		h.down[i] = !h.down[i]
	case 2, 3:
		h.at = h.at.Add(time.Duration(1+h.rand.IntN(40)) * time.Hour)
	default:
		h.run(t, h.rand.IntN(3) == 0, h.rand.IntN(6) == 0)
	}
	for i, target := range h.targets {
		target.Answer()
		if h.down[i] {
			target.Answer(slices.Repeat([]int{503}, 4)...)
		}
	}
	h.at = h.at.Add(time.Second)
}

// run does the steps of an engine's run, and may die before its last step.
func (h *history) run(t *testing.T, force, dies bool) {
	t.Helper()
	h.assigned = nil
	for _, listed := range h.listed {
		h.assigned = append(h.assigned, []string{map[bool]string{true: domain, false: "other.example.com"}[listed]})
	}
	steps, in := h.steps(t), input(fmt.Sprint("j", h.jobs))
	h.jobs++
	in.Force = force
	made, err := steps.Renew(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	version := made.Certificate.Version
	if !slices.Contains(h.order, version) {
		h.order = append(h.order, version)
	}
	targets, err := steps.ListTargets(t.Context(), tls.TargetsInput{Domains: in.Domains})
	if err != nil {
		t.Fatal(err)
	}
	all := len(targets) > 0
	for _, target := range targets {
		_, err := steps.Distribute(t.Context(), tls.DistributeInput{Target: target, Certificate: made.Certificate})
		if all = all && err == nil; err == nil {
			h.serving[slices.IndexFunc(h.list(), func(one tls.Target) bool { return one.ID == target.ID })] = version
		}
	}
	if !all || dies {
		return
	}
	if h.arrived[version].IsZero() {
		h.arrived[version] = h.at
	}
	if _, err := steps.Retire(t.Context(), tls.RetireInput{Name: made.Certificate.Name, Version: version}); err != nil {
		t.Fatal(err)
	}
}

// check compares the store with the record, and counts the disabled versions.
func (h *history) check(t *testing.T) int {
	t.Helper()
	enabled := h.versions(t)
	disabled := slices.DeleteFunc(slices.Clone(h.order), func(version string) bool {
		return slices.ContainsFunc(enabled, func(v certificates.Version) bool { return v.Version == version })
	})
	for _, version := range disabled {
		if at := slices.Index(h.serving[:], version); at >= 0 {
			t.Errorf("target %d serves version %s, which is disabled", at, version)
		}
		later := h.order[slices.Index(h.order, version)+1:]
		if !slices.ContainsFunc(later, func(next string) bool { return !h.arrived[next].IsZero() && h.at.Sub(h.arrived[next]) >= day }) {
			t.Errorf("version %s is disabled, and nothing that follows has been everywhere for a day", version)
		}
	}
	return len(disabled)
}
