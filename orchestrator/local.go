package orchestrator

// WithLocal makes an activity local: its result is not committed by itself, but with the events that follow. So a
// sequence of local activities is one transaction instead of one for each. They are for steps that are quick and cheap
// to repeat. After a process dies, the next one repeats those with uncommitted results, up to Config.LingerResults of
// them, or those of the last Config.Linger. All other guarantees hold. The results are committed before anything but
// another local activity follows from them, a replay sees the same results, and retries, timeouts and undos work. A
// local activity runs in the process of its orchestration, regardless of their number, and sends no heartbeats. New
// code may add or drop WithLocal under a running orchestration.
func WithLocal() CallOption {
	return callOption(func(o *callOptions) { o.local = true })
}

// decidedMore reports whether the execution made a decision that has to be durable before its effects: any decision
// but calls of local activities.
func (x *execution) decidedMore() bool {
	for i := range x.decided {
		if e := &x.decided[i]; e.Kind != activityScheduled || e.Target == nil || !e.Target.Local {
			return true
		}
	}
	return false
}
