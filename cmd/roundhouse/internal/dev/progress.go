package dev

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/vibedata/roundhouse/internal/localhost"
)

// progress prints the progress, with the time since the start.
type progress struct {
	mu    sync.Mutex
	w     io.Writer
	began time.Time
}

func newProgress(w io.Writer) *progress { return &progress{w: w, began: time.Now()} }

func (p *progress) step(format string, args ...any) { p.line("==> ", format, args...) }

func (p *progress) note(format string, args ...any) { p.line("    ", format, args...) }

func (p *progress) line(mark, format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.w, "%6.1fs %s%s\n", time.Since(p.began).Seconds(), mark, fmt.Sprintf(format, args...))
}

// invocation shows the result of a queue message, also of a manual one; requests of users and polls are not shown.
func (p *progress) invocation(i localhost.Invocation) {
	if v := i.Violation(); v != nil {
		p.step("CONTRACT VIOLATION: %v", v)
	}
	switch {
	case i.MessageID != "":
		p.step("%s: message %s, delivery %d: %s in %d ms", i.Function, i.MessageID, i.DequeueCount, i.Outcome, i.Duration.Milliseconds())
	case i.Trigger == "queueTrigger":
		p.step("%s: run by hand: %s in %d ms", i.Function, i.Outcome, i.Duration.Milliseconds())
	default:
		return
	}
	if i.Err != nil {
		p.note("%v", i.Err)
	}
}
