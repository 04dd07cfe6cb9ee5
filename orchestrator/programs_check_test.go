package orchestrator

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
)

// check compares the outcome with the reference.
func (r *trial) check() {
	m := newMachine(newDeeds())
	rt := r.world.signalling(r.t, nil, m.orchestrators(), nil)
	out, err := rt.Get(r.t.Context(), trialID)
	if err != nil {
		r.t.Fatal(err)
	}
	ref := newReference()
	want := ref.run(r.plan.Program, newLife(place{}), out.Execution, 0)
	r.checkEnd(out, want)
	r.checkRest(rt, ref)
	r.checkDeeds(ref)
	r.checkCost(rt)
}

func (r *trial) checkEnd(out Outcome, want ending) {
	var got, keys []string
	if out.Failure != nil {
		got = markers(out.Failure.Message)
	}
	var output string
	if out.Output != nil {
		output = string(out.Output)
		want.output = fmt.Sprintf("%q", want.output)
	}
	permanent := false
	if want.failure != nil && want.status == Failed {
		keys, permanent = want.failure.keys, want.failure.permanent
	}
	if out.Status != want.status || output != want.output || out.Execution != want.executions {
		r.t.Errorf("execution %d ended %s %s (%v), want execution %d, %s %s (%v)", out.Execution, out.Status, output, out.Failure,
			want.executions, want.status, want.output, keys)
	}
	if want.status != Failed {
		return
	}
	if !slices.Equal(got, keys) || out.Failure == nil || out.Failure.Permanent != permanent {
		r.t.Errorf("it failed with %v: %+v, want %v, permanent %v", got, out.Failure, keys, permanent)
	}
}

// checkRest: every orchestration has ended as expected, and can be replayed.
func (r *trial) checkRest(rt *Runtime, ref *reference) {
	got, want := map[string][]string{}, map[string][]string{}
	for _, l := range ref.lives {
		want[l.Path] = append(want[l.Path], string(l.status))
	}
	for _, s := range r.all() {
		if !s.Ended() {
			r.t.Errorf("%s of %q is %s, waits for %s until %v", s.ID, s.Parent, s.Status, s.WaitingKind, s.WaitingUntil)
		}
		out, err := rt.Get(r.t.Context(), s.ID)
		if err != nil {
			r.t.Errorf("%s: %v", s.ID, err)
			continue
		}
		if path := pathOf(out); path != "" || s.ID == trialID { // otherwise it was stopped before it began
			got[path] = append(got[path], string(s.Status))
		}
	}
	for _, all := range []map[string][]string{got, want} {
		for path, ends := range all {
			if slices.Sort(ends); ref.isLoose(path) {
				delete(all, path)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" && ref.exact {
		r.t.Errorf("orchestrations (-want +got):\n%s", diff)
	}
	r.world.replays(r.t, rt)
}

// isLoose reports whether a path is, or is below, one whose progress depends on times.
func (r *reference) isLoose(path string) bool {
	return slices.ContainsFunc(r.loose, func(loose string) bool { return strings.HasPrefix(path, loose) })
}

// checkDeeds: every decision was carried out, and nothing else.
func (r *trial) checkDeeds(ref *reference) {
	got := r.deeds.counts()
	want := maps.Clone(ref.counts)
	for key := range got {
		if _, name, _ := strings.Cut(key, " "); ref.isLoose(key) || ref.isLoose(name) {
			delete(got, key)
			delete(want, key)
		}
	}
	if !ref.exact {
		for _, all := range []map[string]int{got, want} {
			for key := range all {
				all[key] = min(all[key], 1)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		r.t.Errorf("calls and publications that happened, exact %v (-want +got):\n%s%v", ref.exact, diff, r.deeds.calls)
	}
	if !ref.exact {
		return
	}
	undone, all := slices.Clone(r.deeds.undone), slices.Clone(ref.undone)
	if r.plan.Program.has(func(n *part) bool { return n.Op == opCoroutines || n.Child != nil }) {
		slices.Sort(undone) // calls before the part that depends on times
		slices.Sort(all)
	}
	if diff := cmp.Diff(all, undone); diff != "" {
		r.t.Errorf("undone (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(ref.installed, r.deeds.installed); diff != "" {
		r.t.Errorf("installed (-want +got):\n%s", diff)
	}
}

// checkCost bounds messages and rounds by the size of the program and by the faults.
func (r *trial) checkCost(rt *Runtime) {
	rounds := 0
	for _, s := range r.all() {
		rounds += int(s.StateVersion)
	}
	size := 0
	r.plan.Program.walk(1, func(n *part, often int) { size += often * max(1, n.Times) })
	most := size*(len(r.retried)+r.rewinds+1) + r.troubles
	per := 2
	if r.plan.Narrow {
		per = 4 // each event and each decision
	}
	if rounds > per*most+20 || r.received > 20*most+400 {
		r.t.Errorf("%d messages and %d rounds are more than a tree of size %d needs", r.received, rounds, size)
	}
	r.t.Logf("size %d, attempts %d, %d messages, %d rounds, %d troubles, activities %d", size, len(r.retried), r.received, rounds, r.troubles, r.deeds.runs)
}
