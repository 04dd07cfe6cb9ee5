package orchestrator

import (
	"context"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/queues"
)

// begin sends the unsolicited signals of others, and the start.
func (r *trial) begin() {
	for i := range r.plan.Suspends {
		for n, command := range []string{commandSuspend, commandResume} {
			c := commandOf(fmt.Sprint(command, i), command)
			c.OccurredAtUtc = time.Now().Add(time.Duration(2*i+n) * time.Minute)
			r.postSignal(c, r.plan.Within) // messages change places; the times restore the order
		}
	}
	for g := range r.plan.Program.generations() {
		r.plan.Program.early(func(n *part) { r.raise(place{Generation: g}.key(n), trialID, n.Times, true) })
	}
	r.post(startQueue, []byte(trialID), 10*time.Minute)
}

// early visits the parts of a root whose events are sent before it starts.
func (p *program) early(visit func(n *part)) {
	own := &program{Body: p.Body}
	own.walk(1, func(n *part, _ int) {
		if n.Op == opEvents && n.Mode == modeEarly {
			visit(n)
		}
	})
}

func commandOf(id, command string) Signal {
	return Signal{SignalID: id, InstanceID: trialID, RuntimeProvider: provider, Type: ExternalSignal, OccurredAtUtc: time.Now(), Payload: Payload{Command: command}}
}

// raise sends events, each after the previous one was delivered, or all at the same time.
func (r *trial) raise(key, id string, times int, atOnce bool) {
	var all []Signal
	for i := range times {
		all = append(all, Signal{SignalID: fmt.Sprint("raised-", key, "-", i+1), InstanceID: id, RuntimeProvider: provider, Type: ExternalSignal,
			Payload: Payload{Event: eventName(key), Data: fmt.Append(nil, i+1)}})
		if atOnce {
			r.postSignal(all[i], 10*time.Minute)
		}
	}
	if atOnce {
		return
	}
	name := id + " " + key
	r.state.Lock()
	known := r.sent[name]
	r.sent[name] = true
	if !known {
		r.chains[name] = all
	}
	r.state.Unlock()
	if !known {
		r.dispatch(name, 24*time.Hour)
	}
}

// asked answers an orchestration that waits for others.
func (r *trial) asked(j job) {
	switch j.Mode {
	case modeCanceled:
		r.once(j.Key, commandOf("cancel", commandCancel))
	case modeTerminate:
		r.once(j.Key, commandOf("terminate", commandTerminate))
	default:
		r.raise(j.Key, j.ID, j.Times, false)
	}
}

func (r *trial) once(name string, s Signal) {
	r.state.Lock()
	known := r.sent[name]
	r.sent[name] = true
	r.state.Unlock()
	if !known {
		r.postSignal(s, 24*time.Hour)
	}
}

// dispatch sends the first signal of a chain.
func (r *trial) dispatch(name string, within time.Duration) {
	r.state.Lock()
	all := r.chains[name]
	r.state.Unlock()
	if len(all) > 0 {
		r.postSignal(all[0], within)
	}
}

// delivered queues the next signal of the chain.
func (r *trial) delivered(s Signal) {
	r.state.Lock()
	next := ""
	for name, all := range r.chains {
		if len(all) > 0 && all[0].SignalID == s.SignalID && all[0].InstanceID == s.InstanceID {
			next, r.chains[name] = name, all[1:]
		}
	}
	r.state.Unlock()
	if next != "" {
		r.dispatch(next, 24*time.Hour)
	}
}

func (r *trial) postSignal(s Signal, within time.Duration) {
	body, err := marshal(s)
	if err != nil {
		r.t.Error(err)
	}
	r.post(signalQueue, body, within)
}

// post sends a message that becomes visible some time, and sometimes another one.
func (r *trial) post(queue string, body []byte, within time.Duration) {
	for more := true; more; more = r.unlucky(0.2) {
		// The sending process may be dead by now, but its message is not.
		if _, err := r.world.queues.Send(context.WithoutCancel(r.t.Context()), queue, body, min(r.upTo(within), queues.MaxDelay)); err != nil {
			r.t.Error(err)
		}
	}
}
