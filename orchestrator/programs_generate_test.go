package orchestrator

import (
	"math/rand/v2"
	"time"
)

// plan is a random program, with the actions of others on it.
type plan struct {
	Program *program `json:"program"`
	// Attempts is how often the start is repeated before its caller gives up, Rewinds how often an operator rewinds it
	// then.
	Attempts int `json:"attempts"`
	Rewinds  int `json:"rewinds,omitempty"`
	// Suspends is how often it is suspended and resumed within a time.
	Suspends int           `json:"suspends,omitempty"`
	Within   time.Duration `json:"within,omitempty"`
	// The faults: the shares of failing storage calls and of lost messages within the tree, the error of the clocks,
	// and the number of activities of one orchestration above which a process sends the rest to others.
	Faulty float64       `json:"faulty"`
	Lossy  float64       `json:"lossy"`
	Skew   time.Duration `json:"skew"`
	Spread int           `json:"spread"`
	// Narrow limits a round to one event or decision.
	Narrow bool `json:"narrow,omitempty"`
}

// retriesLater allows a generation after the first to fail, or a retried child to have several generations.
const retriesLater = true

// generator draws programs. The result of a program depends only on the program: every race has a fixed winner.
type generator struct {
	*rand.Rand
	site, budget int
	fails        bool // the run fails at least once
	stops        bool // others stop it
}

// where is the place of a part, which restricts its kind.
type where struct {
	depth  int  // of orchestrations
	beside bool // other parts run at the same time
}

func generate(seed uint64) plan {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 1))}
	g.budget = 2 + g.IntN(4) + g.IntN(14)
	p := plan{Attempts: 1 + g.IntN(4)}
	kind := g.IntN(10)
	g.fails, g.stops = kind >= 5 && kind < 8, kind == 8
	p.Program = g.program(where{})
	if g.fails && !retriesLater {
		p.Program.Generations = 1
	}
	switch kind {
	case 5, 6:
		g.insert(p.Program.Body, g.mends(0))
		p.Rewinds = 1 + g.IntN(3)
	case 7:
		g.insert(p.Program.Body, g.fatal())
		p.Rewinds = g.IntN(2)
	case 8:
		mode := []string{modeCanceled, modeCanceled, modeTerminate}[g.IntN(3)]
		g.stop(p.Program, mode, g.IntN(3))
	}
	if g.IntN(3) == 0 {
		p.Suspends, p.Within = 1+g.IntN(2), []time.Duration{20 * time.Minute, time.Hour, 24 * time.Hour, 10 * 24 * time.Hour}[g.IntN(4)]
	}
	p.Faulty = []float64{0, 0.01, 0.05, 0.15}[g.IntN(4)]
	p.Lossy = []float64{0, 0, 0.05, 0.3}[g.IntN(4)]
	p.Skew = []time.Duration{0, time.Second, 5 * time.Minute}[g.IntN(3)]
	p.Spread = []int{1, 2, 1000}[g.IntN(3)]
	p.Narrow = g.IntN(4) == 0
	localize(p.Program, rand.New(rand.NewPCG(seed, 2)))
	return p
}

// localize makes some activities local, in some programs most.
func localize(p *program, chance *rand.Rand) {
	share := chance.IntN(4) // none, a third, two thirds, all
	var walk func(n *part)
	walk = func(n *part) {
		n.Local = n.Op == opActivity && chance.IntN(3) < share
		for _, k := range n.Kids {
			walk(k)
		}
		if n.Child != nil {
			localize(n.Child, chance)
		}
	}
	for _, n := range append([]*part{p.Body}, p.Cleanup...) {
		walk(n)
	}
}

// program returns the program of an orchestration: always a sequence.
func (g *generator) program(at where) *program {
	p := &program{Body: g.sequence(at, 1+g.IntN(4)), Generations: 1}
	if g.IntN(4) == 0 {
		p.Generations = 1 + g.IntN(3)
	}
	return p
}

func (g *generator) sequence(at where, n int) *part {
	s := g.part(opSequence)
	for range n {
		s.Kids = append(s.Kids, g.any(at))
	}
	return s
}

func (g *generator) part(o op) *part {
	g.site++
	return &part{Op: o, Site: g.site}
}

// insert puts a part anywhere into a sequence.
func (g *generator) insert(s, n *part) {
	i := g.IntN(len(s.Kids) + 1)
	s.Kids = append(s.Kids[:i:i], append([]*part{n}, s.Kids[i:]...)...)
}

// any draws a part.
func (g *generator) any(at where) *part {
	g.budget--
	if g.budget < 0 {
		return g.works()
	}
	draw := []func(where) *part{g.work1, g.work1, g.fanOut, g.coroutines, g.nested, g.timer, g.faster, g.slower, g.events, g.child, g.child,
		g.notes, g.channel, g.cancel, g.value, g.publish, g.start, g.try}
	if !at.beside {
		draw = append(draw, g.saga, g.redo)
	}
	return draw[g.IntN(len(draw))](at)
}

func (g *generator) work1(where) *part { return g.works() }

// works is an activity that completes.
func (g *generator) works() *part {
	n := g.part(opActivity)
	if n.Mode = modeOK; g.IntN(4) == 0 {
		n.Mode, n.Times, n.For = modeFlaky, 1+g.IntN(3), g.upTo(10*time.Minute)
	}
	return n
}

// breaks is an activity that fails in each attempt.
func (g *generator) breaks() *part {
	n := g.part(opActivity)
	if n.Mode = modeDoomed; g.IntN(2) == 0 {
		n.Mode, n.Times, n.For = modeTired, 1+g.IntN(3), g.upTo(10*time.Minute)
	}
	return n
}

// mends fails the execution that reaches it, a few times.
func (g *generator) mends(depth int) *part {
	n := g.part(opActivity)
	n.Mode, n.Times = modeUntil, 1+g.IntN(3)
	switch k := g.IntN(8); {
	case k == 0 && depth == 0:
		return &part{Op: opFail, Site: n.Site, Times: n.Times}
	case k == 1:
		return g.around(opCoroutines, n)
	case k == 2:
		return g.around(opFanOut, n)
	case k >= 6:
		return g.around(opSaga, n)
	case k == 5 && depth < 2:
		c := g.part(opChild)
		c.Times, c.Child = g.IntN(5), g.program(where{depth: depth + 1})
		if !retriesLater {
			c.Child.Generations = 1
		}
		g.insert(c.Child.Body, n)
		return c
	default:
		return n
	}
}

// around puts a part next to others, or after them.
func (g *generator) around(o op, n *part) *part {
	outer := g.part(o)
	for range 1 + g.IntN(3) {
		outer.Kids = append(outer.Kids, g.works())
	}
	if o == opSaga {
		outer.Kids = append(outer.Kids, n)
		return outer
	}
	g.insert(outer, n)
	return outer
}

// fatal fails every execution that reaches it.
func (g *generator) fatal() *part {
	switch k := g.IntN(6); {
	case k == 0:
		return g.part(opFail)
	case k == 1:
		return g.around(opCoroutines, g.breaks())
	case k == 2:
		return g.around(opFanOut, g.breaks())
	case k >= 4:
		return g.around(opSaga, g.breaks())
	case k == 3:
		c := g.part(opChild)
		c.Child = g.program(where{depth: 1})
		g.insert(c.Child.Body, g.breaks())
		return c
	default:
		return g.breaks()
	}
}

// stop makes a program, or one that it calls in the end, wait until others stop it.
func (g *generator) stop(p *program, mode string, deeper int) {
	p.Generations = 1
	for range g.IntN(3) {
		p.Cleanup = append(p.Cleanup, g.works())
	}
	if deeper == 0 {
		n := g.part(opStop)
		n.Mode = mode
		p.Body.Kids = append(p.Body.Kids, n)
		return
	}
	c := g.part(opChild)
	c.Child = g.program(where{depth: 1})
	g.stop(c.Child, mode, deeper-1)
	p.Body.Kids = append(p.Body.Kids, c)
}

func (g *generator) fanOut(where) *part {
	n := g.part(opFanOut)
	for range 1 + g.IntN(6) {
		n.Kids = append(n.Kids, g.works())
	}
	return n
}

func (g *generator) coroutines(at where) *part {
	n := g.part(opCoroutines)
	for range 2 + g.IntN(2) {
		n.Kids = append(n.Kids, g.any(where{at.depth, true}))
	}
	return n
}

func (g *generator) nested(at where) *part { return g.sequence(at, 1+g.IntN(3)) }

func (g *generator) timer(at where) *part {
	n := g.part(opTimer)
	n.For = g.upTo([]time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour, longestFor}[g.IntN(5)])
	return n
}

func (g *generator) faster(where) *part {
	n := g.part(opFaster)
	n.For, n.Kids = longestFor-g.upTo(10*24*time.Hour), []*part{g.works()}
	return n
}

func (g *generator) slower(at where) *part {
	n := g.part(opSlower)
	n.For = g.upTo([]time.Duration{time.Minute, time.Hour, 24 * time.Hour, longestFor / 2}[g.IntN(4)])
	switch g.IntN(4) {
	case 0:
		n.Mode, n.For = modeActivity, g.upTo(time.Minute)
	case 1:
		n.Mode = modeTimer
		n.For = min(n.For, 24*time.Hour)
	case 2:
		if at.depth < 3 {
			n.Mode, n.Child = modeChild, g.program(where{depth: at.depth + 1})
			g.endless(n.Child)
			if g.IntN(2) == 0 && !g.stops { // the contract leaves open whether a canceled caller abandons it
				n.Mode = modeAbandoned
			}
			break
		}
		fallthrough
	default:
		n.Mode = modeEvent
	}
	return n
}

// endless keeps a program from ending before a very long time.
func (g *generator) endless(p *program) {
	n := g.part(opTimer)
	n.For = longestFor
	p.Body.Kids = append([]*part{n}, p.Body.Kids...)
}

func (g *generator) events(at where) *part {
	n := g.part(opEvents)
	n.Times = 1 + g.IntN(4)
	n.Mode, n.For = []string{modeAsked, modeRaced, modeEarly}[g.IntN(3)], longestFor
	if n.Mode == modeEarly && (at.depth > 0 || g.fails || g.stops) {
		n.Mode = modeAsked // others do not know the id, or may send after its end
	}
	return n
}

func (g *generator) notes(where) *part {
	n := g.part(opNotes)
	n.Times = 1 + g.IntN(4)
	return n
}

func (g *generator) channel(at where) *part {
	n := g.part(opChannel)
	for range 1 + g.IntN(3) {
		n.Kids = append(n.Kids, g.any(where{at.depth, true}))
	}
	return n
}

func (g *generator) child(at where) *part {
	if at.depth >= 3 {
		return g.works()
	}
	n := g.part(opChild)
	n.Child = g.program(where{depth: at.depth + 1})
	if g.IntN(4) == 0 && !n.Child.has(func(k *part) bool { return k.Op == opEvents }) { // whose ids would be those of an earlier run
		n.Mode = modeNamed
	}
	if g.IntN(4) == 0 {
		m := g.part(opActivity)
		m.Mode, m.Times = modeUntil, 1+g.IntN(2)
		n.Times = m.Times + 1
		if !retriesLater {
			n.Child.Generations = 1
		}
		g.insert(n.Child.Body, m)
	}
	return n
}

func (g *generator) cancel(at where) *part {
	n := g.part(opCancel)
	n.Mode = []string{modeActivity, modeTimer, modeEvent, modeChild}[g.IntN(4)]
	if n.Mode == modeChild && at.depth >= 3 {
		n.Mode = modeEvent
	}
	if g.IntN(2) == 0 {
		n.For = g.upTo(time.Minute)
	}
	if n.Mode == modeChild {
		n.Child = g.program(where{depth: at.depth + 1})
		g.endless(n.Child)
	}
	return n
}

func (g *generator) value(where) *part {
	n := g.part(opValue)
	n.Kids = []*part{g.works()}
	return n
}

func (g *generator) publish(where) *part {
	n := g.part(opPublish)
	n.Mode = []string{"", modeKeyed}[g.IntN(2)]
	return n
}

func (g *generator) start(at where) *part {
	if at.depth >= 3 {
		return g.publish(at)
	}
	n := g.part(opStart)
	n.Mode = []string{"", modeNamed}[g.IntN(2)]
	n.Child = g.program(where{depth: at.depth + 1})
	return n
}

func (g *generator) try(at where) *part {
	n := g.part(opTry)
	kid := g.breaks()
	switch k := g.IntN(4); {
	case k == 0:
		kid = g.around(opFanOut, kid)
	case k == 1:
		kid = g.around(opCoroutines, kid)
	case k == 2 && at.depth < 3:
		c := g.part(opChild)
		c.Child, c.Times = g.program(where{depth: at.depth + 1}), g.IntN(3)
		g.insert(c.Child.Body, kid)
		kid = c
	}
	n.Kids = []*part{kid}
	return n
}

func (g *generator) saga(where) *part { return g.around(opSaga, g.works()) }

func (g *generator) redo(where) *part {
	n := g.part(opRedo)
	n.Kids = []*part{g.works()}
	return n
}

func (g *generator) upTo(d time.Duration) time.Duration { // whole milliseconds
	return time.Duration(1+g.Int64N(int64(d/time.Millisecond))) * time.Millisecond
}
