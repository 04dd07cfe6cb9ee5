package orchestrator

import (
	"fmt"
	"slices"
	"strings"
)

// reference runs a program without a runtime, and so computes the expected result.
type reference struct {
	counts    map[string]int // key -> calls and publications that were decided
	loose     []string       // paths of orchestrations whose progress depends on times
	places    map[string]int // key -> executions that called it
	installed map[string]bool
	undone    []string
	started   map[string]int // path -> orchestrations that are not awaited
	lives     []*life        // orchestrations that have ended
	// exact is set if counts are exact. They are not when the memory of an attempt depends on times.
	exact bool
}

// life is one orchestration, over all its executions.
type life struct {
	place
	executions int
	attempts   int // of this call, so far
	memory     map[string]bool
	said       []string // by the previous generations
	status     Status
	children   map[string]*life
	outputs    map[string]string // key -> result of a child
	undoable   []string          // keys of calls that can be undone, in the order in which they were called

	// showed is set if the code of this execution has seen a failure, acted if it acted afterwards. vague is set if
	// the order of the two depends on times.
	showed, acted, vague bool
}

func newLife(at place) *life {
	return &life{place: at, memory: map[string]bool{}, children: map[string]*life{}, outputs: map[string]string{}}
}

// failure is the reason why a part returned no text.
type failure struct {
	keys      []string
	permanent bool
	stop      string // how others stopped the tree, "" for not at all
}

// ending is the expected end of a tree.
type ending struct {
	status     Status
	output     string
	failure    *failure
	executions int // of the root
}

func newReference() *reference {
	return &reference{counts: map[string]int{}, places: map[string]int{}, installed: map[string]bool{},
		started: map[string]int{}, exact: true}
}

// run returns the end of a program that has at most so many executions, and at most so many attempts of each
// generation; 0 is no bound.
func (r *reference) run(p *program, l *life, executions, attempts int) ending {
	for {
		l.executions++
		l.showed, l.acted, l.vague, l.undoable = false, false, false, nil
		text, f := r.do(l, p.Body)
		if f != nil && f.stop == modeCanceled {
			for _, n := range p.Cleanup {
				r.do(l, n)
			}
		}
		switch {
		case f == nil && l.Generation+1 < p.generations():
			l.said = append(l.said, text)
			l.Generation++
			l.memory = map[string]bool{}
			continue
		case f == nil:
			return r.end(l, ending{Completed, strings.Join(append(l.said, text), "; "), nil, l.executions})
		case f.stop == modeCanceled:
			return r.end(l, ending{Canceled, "", f, l.executions})
		case f.stop == modeTerminate:
			return r.end(l, ending{Terminated, "", f, l.executions})
		}
		r.between(l)
		l.attempts++
		if l.executions == executions || l.attempts == attempts || attempts > 0 && f.permanent {
			return r.end(l, ending{Failed, "", f, l.executions})
		}
	}
}

func (r *reference) end(l *life, end ending) ending {
	if l.status == "" {
		r.lives = append(r.lives, l)
	}
	l.status = end.status
	return end
}

// between decides the memory of the next attempt.
func (r *reference) between(l *life) {
	if l.showed && l.vague && !l.acted {
		r.exact = false
	}
	if !l.showed || l.acted {
		l.memory, l.children = map[string]bool{}, map[string]*life{} // ids are new, too
	}
}

// decides records an action of the code, once if it is remembered. It reports whether it happens now.
func (r *reference) decides(l *life, key string) bool {
	l.acted = l.acted || l.showed
	if l.memory[key] {
		return false
	}
	r.counts[key]++
	return true
}

// fails shows a failure to the code.
func (l *life) fails(f *failure) *failure {
	l.showed = true
	return f
}

func (r *reference) do(l *life, n *part) (string, *failure) {
	key := l.key(n)
	switch n.Op {
	case opActivity:
		text, f := r.call(l, n)
		if f != nil {
			l.fails(f)
		}
		return text, f
	case opSequence:
		return r.sequence(l, n.Kids)
	case opFanOut, opCoroutines:
		return r.beside(l, n)
	case opTimer:
		return "slept", nil
	case opFaster:
		return r.do(l, n.Kids[0])
	case opSlower, opCancel:
		r.lose(l, n)
		if n.Op == opCancel {
			return "interrupted", nil
		}
		return "late", nil
	case opEvents:
		l.acted = l.acted || l.showed
		if n.Mode != modeEarly {
			r.complete(l, key)
		}
		var got []int
		for i := range n.Times {
			got = append(got, i+1)
		}
		return fmt.Sprint(got), nil
	case opNotes:
		l.acted = l.acted || l.showed
		var got []int
		for i := range n.Times {
			got = append(got, i+1)
		}
		return fmt.Sprint(got), nil
	case opChannel:
		return r.sequence(l, n.Kids)
	case opChild:
		return r.child(l, n)
	case opValue:
		r.complete(l, "echo "+key)
		r.call(l, n.Kids[0])
		return "same", nil
	case opPublish:
		r.complete(l, "published "+key)
		if n.Mode == modeKeyed {
			r.counts["published "+key] = 1
		}
		return "told", nil
	case opStart:
		r.start(l, n)
		return "started", nil
	case opTry:
		text, f := r.do(l, n.Kids[0])
		if f == nil || f.stop != "" {
			return text, f
		}
		return fmt.Sprint("caught ", f.keys), nil
	case opFail:
		if n.Times == 0 || l.executions-l.Generation <= n.Times {
			return "", &failure{keys: []string{key}}
		}
		return "went well", nil
	case opStop:
		r.decides(l, key)
		return "", &failure{stop: n.Mode}
	case opSaga:
		text, f := r.sequence(l, n.Kids)
		if f != nil && f.stop == "" {
			for _, undone := range slices.Backward(l.undoable) {
				r.takeBack(l, undone)
			}
			l.undoable = nil
		}
		return text, f
	case opRedo:
		if _, f := r.do(l, n.Kids[0]); f != nil {
			return "", f
		}
		r.takeBack(l, l.key(n.Kids[0]))
		return r.do(l, n.Kids[0])
	default:
		panic(n.Op) // unreachable: there are no others
	}
}

// sequence runs the parts up to the first that fails.
func (r *reference) sequence(l *life, parts []*part) (string, *failure) {
	var all []string
	for _, k := range parts {
		text, f := r.do(l, k)
		if f != nil {
			return "", f
		}
		all = append(all, text)
	}
	return fmt.Sprint(all), nil
}

// complete is a call that completes.
func (r *reference) complete(l *life, key string) {
	r.decides(l, key)
	l.memory[key] = true
}

// call is an activity with a failure that the code has not seen yet.
func (r *reference) call(l *life, n *part) (string, *failure) {
	key := l.key(n)
	if !slices.Contains(l.undoable, key) {
		l.undoable = append(l.undoable, key)
	}
	if r.decides(l, key) {
		r.installed[key] = true
		r.places[key]++
		if n.Mode == modeDoomed || n.Mode == modeTired || n.Mode == modeUntil && r.places[key] <= n.Times {
			return "", &failure{keys: []string{key}, permanent: n.Mode == modeDoomed}
		}
	}
	l.memory[key] = true
	return "did " + key, nil
}

// beside runs the kids at the same time. Actions of a kid after another one failed depend on times.
func (r *reference) beside(l *life, n *part) (string, *failure) {
	var all []string
	var failed *failure
	showed, showedAll, busy := l.showed, false, 0
	for _, k := range n.Kids {
		before := r.total()
		l.showed = showed
		var text string
		var f *failure
		if n.Op == opFanOut {
			text, f = r.call(l, k)
		} else {
			text, f = r.do(l, k)
		}
		showedAll = showedAll || l.showed
		if r.total() > before {
			busy++
		}
		if all = append(all, text); f != nil {
			failed = failed.join(f)
		}
	}
	l.showed = showedAll || failed != nil
	if showedAll && !showed && busy > 1 {
		l.vague = true
	}
	if failed != nil {
		return "", failed
	}
	return fmt.Sprint(all), nil
}

// total grows with every decision.
func (r *reference) total() int {
	n := 0
	for _, c := range r.counts {
		n += c
	}
	for _, c := range r.started {
		n += c
	}
	return n
}

func (f *failure) join(g *failure) *failure {
	if f == nil {
		return g
	}
	return &failure{keys: append(slices.Clone(f.keys), g.keys...), permanent: f.permanent || g.permanent, stop: f.stop + g.stop}
}

// lose is a call that is not done when its caller continues. Its progress depends on times.
func (r *reference) lose(l *life, n *part) {
	switch n.Mode {
	case modeAbandoned:
		r.start(l, n)
	case modeChild:
		l.acted = l.acted || l.showed
		r.loose = append(r.loose, l.below(n).Path)
	case modeActivity, modeEvent:
		l.acted = l.acted || l.showed
	}
}

// start is an orchestration that continues when its starter has ended.
func (r *reference) start(l *life, n *part) {
	key := l.key(n)
	l.acted = l.acted || l.showed
	if l.memory["started "+key] {
		return
	}
	l.memory["started "+key] = true
	path := l.below(n)
	if n.Mode == modeNamed && r.started[path.Path] > 0 {
		return // it has the id already
	}
	if r.started[path.Path]++; r.started[path.Path] > 1 {
		r.loose = append(r.loose, path.Path) // two run at the same time
	}
	r.run(n.Child, newLife(path), 0, 1)
}

// child is an orchestration that is awaited.
func (r *reference) child(l *life, n *part) (string, *failure) {
	key := "child " + l.key(n)
	below := l.below(n)
	if n.Mode == modeNamed { // attempts that start over run it again under its id, where only the latest run is listed
		r.loose = append(r.loose, below.Path)
	}
	l.acted = l.acted || l.showed
	if l.memory[key] {
		return l.outputs[key], nil
	}
	c := l.children[key]
	if c == nil {
		c = newLife(below)
		l.children[key] = c
	}
	c.attempts = 0
	end := r.run(n.Child, c, 0, max(1, n.Times))
	if end.failure != nil {
		if end.failure.stop == "" {
			l.showed = true
		}
		return "", end.failure
	}
	l.memory[key], l.outputs[key] = true, end.output
	return end.output, nil
}

// takeBack is an undo.
func (r *reference) takeBack(l *life, key string) {
	r.counts["undo "+key]++
	r.installed[key] = false
	r.undone = append(r.undone, key)
	delete(l.memory, key)
	l.undoable = slices.DeleteFunc(l.undoable, func(k string) bool { return k == key })
}
