package nodes_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/orchestrator/nodes"
)

// said returns the texts in the rows of living nodes.
func (w *world) said(t *testing.T) (texts []string) {
	t.Helper()
	all, err := nodes.List(t.Context(), w.tables, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range all {
		if info.State == nodes.StateAlive {
			texts = append(texts, info.Said)
		}
	}
	return texts
}

// The text of a node is in its row soon, with work or without, and costs nothing while it stays the same.
func TestSay(t *testing.T) {
	t.Parallel()
	for name, working := range map[string]bool{"with work": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				a := w.process(t, "a")
				if err := a.Start(t.Context()); err != nil {
					t.Fatal(err)
				}
				if working {
					hold(t, a, "order-1")
				}
				time.Sleep(5 * time.Minute)
				for _, text := range []string{"crm is down", "crm is down still", ""} {
					a.Say(text)
					time.Sleep(nodes.DefaultInterval + time.Second)
					if got := w.said(t); len(got) != 1 || got[0] != text {
						t.Errorf("%q is said as %q", text, got)
					}
				}
				a.Say("the last")
				time.Sleep(5 * time.Minute)
				a.count()
				for range 60 {
					a.Say("the last")
					time.Sleep(time.Minute)
				}
				if n, most := a.count(), 7*60; working && n > most || !working && n > 0 {
					t.Errorf("%d requests in an hour in which it says nothing new", n)
				}
			})
		})
	}
}

// A text that could not be written is written when storage is back, and a fenced node publishes it again under its
// other name.
func TestSayAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := w.process(t, "a"), w.process(t, "b")
		hold(t, a, "order-1")
		name := a.Name()
		a.refuse(errDown)
		a.Say("crm is down")
		for w.deliver(t, b) == 0 {
			time.Sleep(time.Second)
		}
		a.refuse(nil)
		time.Sleep(2 * nodes.DefaultInterval)
		got := strings.Join(w.said(t), "\n")
		if a.Name() == name || strings.Count(got, "crm is down") != 1 {
			t.Errorf("node %s says %q", a.Name(), got)
		}
	})
}

// A text that does not fit a row is left out, and the row is written nevertheless.
func TestSayTooMuch(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"long": strings.Repeat("x", 30<<10+1), "no text": "a\xffb"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				a := w.process(t, "a")
				a.Say("short")
				a.Say(text)
				time.Sleep(nodes.DefaultInterval + time.Second)
				if got := w.said(t); len(got) != 1 || got[0] != "" {
					t.Errorf("it says %.40q", got)
				}
			})
		})
	}
}
