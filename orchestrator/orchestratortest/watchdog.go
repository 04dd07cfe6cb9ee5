package orchestratortest

import (
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// maxSilence is for how long the code of an orchestrator may run without a sign of life, in real time, before the run
// counts as stalled.
var maxSilence = 30 * time.Second

// checks is the number of checks of the watchdog in that time.
const checks = 6

// watchdog detects an orchestrator that does not return and keeps its goroutine. The clock of the bubble does not
// advance then, so the watchdog runs outside of the bubble. A nil watchdog does nothing.
type watchdog struct {
	on    atomic.Bool
	beats atomic.Int64 // counts signs of life
	busy  atomic.Int64 // activities that are running: they may take real time
}

// startWatchdog starts a watchdog for a test. It runs until stop is called.
func startWatchdog(t *testing.T) (d *watchdog, stop func()) {
	d = &watchdog{}
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(maxSilence / checks)
		defer ticker.Stop()
		still, last := 0, int64(0)
		for still < checks {
			select {
			case <-end:
				return
			case <-ticker.C:
			}
			beats := d.beats.Load()
			if still++; !d.on.Load() || d.busy.Load() > 0 || beats != last {
				still = 0
			}
			last = beats
		}
		panic(fmt.Sprintf("%s: the run is stalled: the code of an orchestrator has not come back for %v: an orchestrator waits by its Context only, "+
			"and a loop has to end when that gives an error\n\n%s", t.Name(), maxSilence, blockedStacks()))
	}()
	return d, func() {
		close(end)
		<-ended
	}
}

func (d *watchdog) beat() { d.beats.Add(1) }

// blockedStacks returns the stacks of orchestrators that are not waiting in their Context.
func blockedStacks() string {
	all := make([]byte, 1<<20)
	all = all[:runtime.Stack(all, true)]
	var found []string
	for stack := range strings.SplitSeq(string(all), "\n\n") {
		header, frames, _ := strings.Cut(stack, "\n")
		if !strings.Contains(header, "durable") && strings.Contains(frames, "/orchestrator.(*execution)") {
			found = append(found, stack)
		}
	}
	return strings.Join(found, "\n\n")
}
