package orchestrator

import "time"

func willRetry(s Start) Start {
	s.WillRetry = true
	return s
}

func sleep(ctx *Context, d time.Duration) error { return ctx.Sleep(d) }

func shielded(ctx *Context) *Context { return WithoutCancel(ctx) }

func isParking(ctx *Context) bool { return ctx.Parking() }
