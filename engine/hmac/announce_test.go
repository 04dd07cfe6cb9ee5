package hmac_test

import (
	"sync"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/engine/hmac"
)

// Two runs announce their versions at the same time: the second one names the first as its predecessor.
func TestNotifyAtTheSameTime(t *testing.T) {
	t.Parallel()
	// Each case runs when the process that announces b is about to fix its times, which commit does.
	cases := map[string]func(t *testing.T, w *world, commit func() error) (hmac.NotifyOutput, error){
		"the other was decided before, and is told of first": func(t *testing.T, w *world, commit func() error) (hmac.NotifyOutput, error) {
			c := w.tell(t, w.decided(t, "c"))
			return c, commit()
		},
		"the other is decided meanwhile, and told of first": func(t *testing.T, w *world, commit func() error) (hmac.NotifyOutput, error) {
			c := w.turn(t, "d")
			return c, commit()
		},
		"the other is decided meanwhile, and told of second": func(t *testing.T, w *world, commit func() error) (hmac.NotifyOutput, error) {
			commit = sync.OnceValue(commit)
			slow := w.stepsOver(t, w.vault, tablesHook{w.tables, func(call string, do func() error) error {
				if call == "Replace" {
					if err := commit(); err != nil {
						t.Errorf("the first one: %v", err)
					}
				}
				return do()
			}})
			c, err := slow.Notify(t.Context(), notice(w.decided(t, "d")))
			if err != nil {
				t.Fatal(err)
			}
			return c, commit()
		},
	}
	for what, meanwhile := range cases {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			a := w.turn(t, "a")
			w.move(start.Add(48 * time.Hour))
			made := w.decided(t, "b")
			w.decided(t, "c")
			var c hmac.NotifyOutput
			met := false
			b, err := w.stepsOver(t, w.vault, tablesHook{w.tables, func(call string, do func() error) (err error) {
				if call != "Replace" || met {
					return do()
				}
				met = true
				c, err = meanwhile(t, w, do)
				return err
			}}).Notify(t.Context(), notice(made))
			if err != nil {
				t.Fatal(err)
			}
			first, second := b, c
			if c.ActiveAtUtc.Before(b.ActiveAtUtc) {
				first, second = c, b
			}
			if first.PreviousVersion != a.Version || second.PreviousVersion != first.Version || !first.ActiveAtUtc.Before(second.ActiveAtUtc) {
				t.Errorf("after %s: %+v, then %+v", a.Version, first, second)
			}
			if n := len(w.outbox.Events()); n != 3 {
				t.Errorf("%d events, want 3", n)
			}
		})
	}
}

// After many unannounced slots, the next one can be announced.
func TestNotifyAmongManyLeftBehind(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 120 {
		w.decided(t, start.AddDate(0, 0, -i).Format(time.DateOnly))
	}
	first := w.turn(t, "a")
	if second := w.turn(t, "b"); second.PreviousVersion != first.Version {
		t.Errorf("%+v after %+v", second, first)
	}
}

// decided rotates a slot without an announcement.
func (w *world) decided(t testing.TB, slot string) hmac.RotateOutput {
	t.Helper()
	made, err := w.steps(t).Rotate(t.Context(), input(slot, "j"))
	if err != nil {
		t.Fatal(err)
	}
	return made
}
