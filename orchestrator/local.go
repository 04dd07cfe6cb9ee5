package orchestrator

// WithLocal makes a local activity of what is called: its result is not committed by itself, but with what follows. So a
// sequence of local activities is one transaction, and not one for each. They are for steps that are quick and cheap to
// repeat: a process that dies repeats those whose results were not committed, up to Config.LingerResults of them, or those of
// the last Config.Linger. All other promises hold: what anything but another local activity follows from is committed before, a
// replay sees the same results, and retries, time-outs and undos work. A local activity runs in the process of its
// orchestration, however many there are, and sends no heartbeats. An orchestration that is under way may be given other
// code that adds or drops WithLocal.
func WithLocal() CallOption {
	return callOption(func(o *callOptions) { o.local = true })
}

// decidedMore reports whether something was decided that has to be durable before anything follows from it: everything but
// calls of local activities.
func (x *execution) decidedMore() bool {
	for i := range x.decided {
		if e := &x.decided[i]; e.Kind != activityScheduled || e.Target == nil || !e.Target.Local {
			return true
		}
	}
	return false
}
