package testenv

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// limited is a test with a minute left, and records how it fails.
type limited struct {
	recorder
	start time.Time
}

func (l *limited) Deadline() (time.Time, bool) { return l.start.Add(time.Minute), true }

func (l *limited) Fatalf(format string, args ...any) {
	l.fate = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// A wait ends with the state, with the value, or with the test's own time, which leaves enough to report the last
// state.
func TestWaits(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		wait func(testing.TB)
		want string
	}{
		"a state that comes": {func(t testing.TB) {
			begin := time.Now()
			Until(t, "a second", func() bool { return time.Since(begin) >= time.Second })
		}, "1s: done"},
		"a state that never comes": {func(t testing.TB) {
			n := 0
			Await(t, "a thousand million", func() (int, bool) { n++; return min(n, 7), n == 1e9 })
		}, "40s: a thousand million: still awaited when the test's time was nearly over; last state: 7"},
		"a value": {func(t testing.TB) {
			c := make(chan int)
			go func() { time.Sleep(time.Second); c <- 5 }()
			Receive(t, "five", c)
		}, "1s: done"},
		"a value that never comes": {func(t testing.TB) { Receive(t, "five", make(chan int)) }, "40s: five: still awaited when the test's time was nearly over"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l, ended := &limited{start: time.Now()}, make(chan struct{})
				l.TB = t
				go func() {
					defer close(ended)
					test.wait(l)
					l.fate = "done"
				}()
				<-ended
				if got := fmt.Sprintf("%v: %s", time.Since(l.start), l.fate); !strings.HasPrefix(got, test.want) {
					t.Errorf("%s, want %s", got, test.want)
				}
			})
		})
	}
}
