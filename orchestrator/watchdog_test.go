package orchestrator

import (
	"sync/atomic"
	"testing"
	"time"
)

// A waiting turn is abandoned by the time in which the process ran: late checks show that it did not.
func TestTimeInWhichTheProcessDidNotRun(t *testing.T) {
	t.Parallel()
	const limit = 10 * time.Second
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	waiting := make(chan int64)
	release := make(chan struct{})
	defer close(release)
	go func() {
		waiting <- new(watchdog).goroutineID()
		<-release
	}()
	id := <-waiting
	for name, test := range map[string]struct {
		looks []time.Duration // since the turn began
		want  time.Duration   // at which check it is abandoned; 0 for none
	}{
		"in time":                           {looks: seconds(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11), want: 10 * time.Second},
		"suspended for 12 s":                {looks: seconds(12, 13, 14, 15, 16, 17, 18, 19)},
		"suspended for a day, then waits":   {looks: seconds(86400, 86401, 86402, 86403, 86404, 86405, 86406, 86407, 86408, 86409), want: 86408 * time.Second},
		"suspended in the middle":           {looks: seconds(1, 2, 3, 4, 5, 3600, 3601, 3602, 3603), want: 3603 * time.Second},
		"a look that is only a little late": {looks: []time.Duration{1900 * time.Millisecond, 3800 * time.Millisecond, 5700 * time.Millisecond, 7600 * time.Millisecond, 9500 * time.Millisecond, 11400 * time.Millisecond}, want: 11400 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			w := watchdog{limit: limit}
			w.began.Store(began.UnixNano())
			w.goroutine.Store(id)
			var got time.Duration
			for _, at := range test.looks {
				if place, tooLong := w.look(1, began.Add(at)); tooLong {
					if got = at; place == "" {
						t.Error("no place is named")
					}
					break
				}
			}
			if got != test.want {
				t.Errorf("given up after %v, want %v", got, test.want)
			}
		})
	}
}

// A computing turn is abandoned by the processor time of the process, however late it is.
func TestTurnThatComputes(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	id, done := make(chan int64), make(chan struct{})
	var stop atomic.Bool
	go func() {
		defer close(done)
		id <- new(watchdog).goroutineID()
		for !stop.Load() { // it computes
		}
	}()
	w := watchdog{limit: time.Hour}
	w.began.Store(began.UnixNano())
	w.goroutine.Store(<-id)
	for i := range 100 {
		if _, tooLong := w.look(1, began.Add(time.Duration(i)*6*time.Minute)); tooLong {
			t.Fatal("an hour of waiting is said of a turn that has computed for a moment")
		}
	}
	w.used -= computing * w.limit // as if it had computed for so long
	if _, tooLong := w.look(1, began.Add(11*time.Hour)); !tooLong {
		t.Error("a turn that computes is never given up")
	}
	stop.Store(true)
	<-done
}

func seconds(all ...int) []time.Duration {
	var times []time.Duration
	for _, s := range all {
		times = append(times, time.Duration(s)*time.Second)
	}
	return times
}
