package registry_test

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/tables"
)

// model is the simplest model of the registry.
type model struct {
	holder string
	until  time.Time
	count  int
}

func (m model) held(now time.Time) bool { return m.holder != "" && now.Before(m.until) }

// After any sequence of job actions, lock holders, permitted changes and the document equal those of the model.
func TestStateMachine(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		c, m := newClock(), model{}
		r := registry.New(tables.NewMemory(), "")
		r.Now = c.now
		if err := r.CreateTable(t.Context()); err != nil {
			rt.Fatal(err)
		}
		create(t, r, instance)
		job := rapid.SampledFrom([]string{"a", "b", "c"})
		span := rapid.SampledFrom([]time.Duration{time.Second, time.Minute, time.Hour})
		expect := func(what string, err error, allowed bool) {
			if (err == nil) != allowed || (err != nil && !errors.Is(err, registry.ErrLocked)) {
				rt.Fatalf("%s: %v, allowed: %v", what, err, allowed)
			}
		}
		take := func(j string, d time.Duration) {
			until := c.now().Add(d)
			if m.holder == j && m.until.After(until) {
				until = m.until
			}
			m.holder, m.until = j, until
		}
		rt.Repeat(map[string]func(*rapid.T){
			"acquire": func(rt *rapid.T) {
				j, d := job.Draw(rt, "job"), span.Draw(rt, "for")
				_, err := r.Acquire(t.Context(), instance, j, d)
				allowed := !m.held(c.now()) || m.holder == j
				if expect("acquire", err, allowed); allowed {
					take(j, d)
				}
			},
			"renew": func(rt *rapid.T) {
				j, d := job.Draw(rt, "job"), span.Draw(rt, "for")
				_, err := r.Renew(t.Context(), instance, j, d)
				if expect("renew", err, m.holder == j); m.holder == j {
					take(j, d)
				}
			},
			"release": func(rt *rapid.T) {
				j := job.Draw(rt, "job")
				if expect("release", r.Release(t.Context(), instance, j), true); m.holder == j {
					m.holder, m.until = "", time.Time{}
				}
			},
			"update": func(rt *rapid.T) {
				j := job.Draw(rt, "job")
				_, err := r.Update(t.Context(), instance, j, count)
				allowed := m.held(c.now()) && m.holder == j
				if expect("update", err, allowed); allowed {
					m.count++
				}
			},
			"update without a lock": func(rt *rapid.T) {
				_, err := r.Update(t.Context(), instance, "", count)
				allowed := !m.held(c.now())
				if expect("update", err, allowed); allowed {
					m = model{count: m.count + 1}
				}
			},
			"time passes": func(rt *rapid.T) { c.pass(span.Draw(rt, "time")) },
			"": func(rt *rapid.T) {
				i, err := r.Get(t.Context(), instance)
				if err != nil || counted(t, i) != m.count || i.Lock.JobID != m.holder || !i.Lock.Until.Equal(m.until) {
					rt.Fatalf("%+v, %v; want %+v", i, err, m)
				}
			},
		})
	})
}
