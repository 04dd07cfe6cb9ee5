package orchestrator

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// order is the input of an orchestration that runs a program.
type order struct {
	place
	Program *program `json:"program"`
	Said    []string `json:"said,omitempty"` // by the previous generations
}

// machine is the code of all random programs: one orchestrator for the trees and one for their children.
type machine struct {
	deeds       *deeds
	root, child *Orchestrator[order, string]
	work, block *Activity[job, string]
	ask, undo   *Activity[job, string]
	echo        *Activity[string, string]
}

func newMachine(d *deeds) *machine {
	m := &machine{deeds: d, work: NewActivity("work", d.work), block: NewActivity("block", d.block), ask: NewActivity("ask", d.ask),
		undo: NewActivity("undo", d.undo), echo: NewActivity("echo", d.echo)}
	m.root = NewOrchestrator("test", m.run)
	m.child = NewOrchestrator("child", m.run)
	return m
}

func (m *machine) orchestrators() []AnyOrchestrator { return []AnyOrchestrator{m.root, m.child} }

func (m *machine) activities() []AnyActivity {
	return []AnyActivity{m.work, m.block, m.ask, m.undo, m.echo}
}

// run runs a program.
func (m *machine) run(ctx *Context, o order) (string, error) {
	r := &interpreter{m, o.place}
	said, err := r.do(ctx, o.Program.Body)
	if _, canceled := ctx.Canceled(); canceled {
		for _, n := range o.Program.Cleanup {
			if _, failed := r.do(WithoutCancel(ctx), n); failed != nil {
				return "", failed
			}
		}
	}
	if err != nil {
		return "", err
	}
	o.Said = append(o.Said, said)
	if o.Generation++; o.Generation < o.Program.generations() {
		return "", ContinueAsNew(o)
	}
	return strings.Join(o.Said, "; "), nil
}

// interpreter runs the parts of one generation.
type interpreter struct {
	*machine
	place
}

func (r *interpreter) do(ctx *Context, n *part) (string, error) {
	switch n.Op {
	case opActivity:
		return r.call(ctx, n).Await()
	case opSequence:
		return r.sequence(ctx, n.Kids)
	case opFanOut:
		var all []*Future[string]
		for _, k := range n.Kids {
			all = append(all, r.call(ctx, k))
		}
		said, err := All(all...)
		return fmt.Sprint(said), err
	case opCoroutines:
		var all []*Future[string]
		for _, k := range n.Kids {
			all = append(all, Go(ctx, func(ctx *Context) (string, error) { return r.do(ctx, k) }))
		}
		said, err := All(all...)
		return fmt.Sprint(said), err
	case opTimer:
		return r.timer(ctx, n)
	case opFaster:
		f := r.call(ctx, n.Kids[0])
		if Any(ctx, Timer(ctx, n.For), f) == 0 {
			return "", errors.New("the long timer was first")
		}
		return f.Await()
	case opSlower:
		return r.slower(ctx, n)
	case opEvents:
		return r.events(ctx, n)
	case opNotes:
		return r.notes(ctx, n)
	case opChannel:
		return r.channel(ctx, n)
	case opChild:
		options := []CallOption{WithRetry(Retry{MaxAttempts: n.Times})}
		if n.Mode == modeNamed {
			options = append(options, WithID("named-"+ctx.ID()+"-"+r.key(n)))
		}
		return r.child.Call(ctx, order{r.below(n), n.Child, nil}, options...).Await()
	case opCancel:
		f := r.never(ctx, n)
		if err := r.pass(ctx, n); err != nil {
			return "", err
		}
		Cancel(ctx, f)
		return "interrupted", wasInterrupted(f)
	case opValue:
		return r.value(ctx, n)
	case opPublish:
		return "told", ctx.Publish(r.publication(n))
	case opStart:
		id := ""
		if n.Mode == modeNamed {
			id = "detached-" + r.key(n)
		}
		_, err := r.child.Start(ctx, id, order{r.below(n), n.Child, nil})
		return "started", err
	case opTry:
		said, err := r.do(ctx, n.Kids[0])
		if _, canceled := ctx.Canceled(); canceled || err == nil {
			return said, err
		}
		return fmt.Sprint("caught ", markers(err.Error())), nil
	case opFail:
		if failed := ctx.Execution() - r.Generation; n.Times == 0 || failed <= n.Times {
			return "", fault(r.key(n))
		}
		return "went well", nil
	case opStop:
		if _, err := r.ask.Call(ctx, job{Key: r.key(n), Mode: n.Mode, ID: ctx.ID()}).Await(); err != nil {
			return "", err
		}
		_, err := Event[int](ctx, "never").Await()
		return "", err
	case opSaga:
		said, err := r.sequence(ctx, n.Kids)
		if err != nil {
			return "", errors.Join(err, Undo(ctx))
		}
		return said, nil
	case opRedo:
		f := r.call(ctx, n.Kids[0])
		if _, err := f.Await(); err != nil {
			return "", err
		}
		if err := Undo(ctx, f); err != nil {
			return "", err
		}
		return r.call(ctx, n.Kids[0]).Await()
	default:
		return "", fmt.Errorf("no such operation: %s", n.Op)
	}
}

func (r *interpreter) sequence(ctx *Context, parts []*part) (string, error) {
	var all []string
	for _, k := range parts {
		said, err := r.do(ctx, k)
		if err != nil {
			return "", err
		}
		all = append(all, said)
	}
	return fmt.Sprint(all), nil
}

// call begins an activity.
func (r *interpreter) call(ctx *Context, n *part) *Future[string] {
	j := job{Key: r.key(n), Mode: n.Mode, Times: n.Times}
	options := []CallOption{WithUndo(r.undo, j)}
	switch n.Mode {
	case modeFlaky:
		options = append(options, WithRetry(Retry{MaxAttempts: n.Times + 1, FirstInterval: n.For}))
	case modeTired:
		options = append(options, WithRetry(Retry{MaxAttempts: n.Times, FirstInterval: n.For}))
	}
	if n.Local {
		options = append(options, WithLocal())
	}
	return r.work.Call(ctx, j, options...)
}

func (r *interpreter) timer(ctx *Context, n *part) (string, error) {
	began := ctx.Now()
	if err := ctx.Sleep(n.For); err != nil {
		return "", err
	}
	if passed := ctx.Now().Sub(began); passed < n.For && r.first(ctx) {
		return "", fmt.Errorf("a timer of %v was done after %v", n.For, passed)
	}
	return "slept", nil
}

// first reports whether this is the first attempt of this generation: another one finds timers that have fired.
func (r *interpreter) first(ctx *Context) bool { return ctx.Execution() == r.Generation+1 }

// never returns a wait that does not end by itself.
func (r *interpreter) never(ctx *Context, n *part) Waitable {
	switch n.Mode {
	case modeActivity:
		return r.block.Call(ctx, job{Key: r.key(n)})
	case modeTimer:
		return Timer(ctx, longestFor)
	case modeChild:
		return r.child.Call(ctx, order{r.below(n), n.Child, nil})
	case modeAbandoned:
		return r.child.Call(ctx, order{r.below(n), n.Child, nil}, WithParentClose(AbandonChild))
	default:
		return Event[int](ctx, "never")
	}
}

// pass waits for some time, so that calls may begin.
func (r *interpreter) pass(ctx *Context, n *part) error {
	if n.For == 0 {
		return nil
	}
	return ctx.Sleep(n.For)
}

// wasInterrupted returns nil for an interrupted call.
func wasInterrupted(w Waitable) error {
	var err error
	switch f := w.(type) {
	case *Future[string]:
		_, err = f.Await()
	case *Future[int]:
		_, err = f.Await()
	case *Future[time.Time]:
		_, err = f.Await()
	}
	if !errors.Is(err, ErrCanceled) {
		return fmt.Errorf("what was canceled gave %w", err)
	}
	return nil
}

// slower lets a short timer win. An activity that has lost is interrupted, because it would run again and again.
func (r *interpreter) slower(ctx *Context, n *part) (string, error) {
	slow, short := r.never(ctx, n), Timer(ctx, n.For)
	if Any(ctx, slow, short) == 0 {
		return "", errors.New("what does not end was first")
	}
	if _, err := short.Await(); err != nil {
		return "", err
	}
	if n.Mode != modeActivity {
		return "late", nil
	}
	Cancel(ctx, slow)
	return "late", wasInterrupted(slow)
}

func (r *interpreter) events(ctx *Context, n *part) (string, error) {
	key := r.key(n)
	if n.Mode != modeEarly {
		if _, err := r.ask.Call(ctx, job{Key: key, Mode: n.Mode, Times: n.Times, ID: ctx.ID()}).Await(); err != nil {
			return "", err
		}
	}
	var got []int
	for range n.Times {
		e := Event[int](ctx, eventName(key))
		if n.Mode == modeRaced {
			late := Timer(ctx, n.For)
			if Any(ctx, late, e) == 0 {
				if _, err := late.Await(); err != nil {
					return "", err
				}
				return "", errors.New("the long timer was first")
			}
		}
		v, err := e.Await()
		if err != nil {
			return "", err
		}
		got = append(got, v)
	}
	if n.Mode == modeEarly {
		slices.Sort(got) // they are sent at the same time, and messages change places
	}
	return fmt.Sprint(got), nil
}

// notes sends events to the orchestration itself, which receives them.
func (r *interpreter) notes(ctx *Context, n *part) (string, error) {
	name := eventName(r.key(n))
	for i := range n.Times {
		if err := RaiseEvent(ctx, ctx.ID(), name, i+1); err != nil {
			return "", err
		}
	}
	var got []int
	for range n.Times {
		v, err := Event[int](ctx, name).Await()
		if err != nil {
			return "", err
		}
		got = append(got, v)
	}
	return fmt.Sprint(got), nil
}

// channel runs the kids in a coroutine that sends their results.
func (r *interpreter) channel(ctx *Context, n *part) (string, error) {
	c := NewChannel[string](ctx, len(n.Kids)%2)
	producer := Go(ctx, func(ctx *Context) (string, error) {
		defer c.Close()
		for _, k := range n.Kids {
			said, err := r.do(ctx, k)
			if err == nil {
				err = c.Send(ctx, said)
			}
			if err != nil {
				return "", err
			}
		}
		return "", nil
	})
	var all []string
	for {
		said, ok, err := c.Receive(ctx)
		if err != nil {
			return "", err
		}
		if !ok {
			break
		}
		all = append(all, said)
	}
	_, err := producer.Await()
	return fmt.Sprint(all), err
}

func eventName(key string) string { return "event-" + key }

// value compares values drawn before a wait with those of a replay after the wait.
func (r *interpreter) value(ctx *Context, n *part) (string, error) {
	drawn, err := SideEffect(ctx, "draw", r.deeds.draw)
	if err != nil {
		return "", err
	}
	now := fmt.Sprint(ctx.NewUUID(), " ", ctx.Rand().IntN(1e9), " ", drawn)
	before, err := r.echo.Call(ctx, r.key(n)+" "+now).Await()
	if err != nil {
		return "", err
	}
	if _, err := r.call(ctx, n.Kids[0]).Await(); err != nil {
		return "", err
	}
	if before != r.key(n)+" "+now {
		return "", fmt.Errorf("%s became %s", before, now)
	}
	return "same", nil
}

func (r *interpreter) publication(n *part) Publication {
	p := Publication{TenantID: "tenant", Type: "told", Payload: json.RawMessage(fmt.Sprintf("%q", r.key(n)))}
	if n.Mode == modeKeyed {
		p.Key = "key-" + r.key(n)
	}
	return p
}

// fault returns the failure of a place. Its marker survives every error that wraps it.
func fault(key string) error { return fmt.Errorf("!%s!", key) }

var marker = regexp.MustCompile(`![^! ]+!`)

// markers returns the failures in an error, in order.
func markers(text string) []string {
	var all []string
	for _, m := range marker.FindAllString(text, -1) {
		if m = strings.Trim(m, "!"); !slices.Contains(all, m) {
			all = append(all, m)
		}
	}
	return all
}
