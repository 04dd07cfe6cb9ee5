package worker

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/vibedata/roundhouse/internal/durations"
	"github.com/vibedata/roundhouse/queues"
)

// shortestPause is the first pause between polls of an empty queue; each poll that finds nothing doubles it, up to
// Config.MaxPollInterval.
const shortestPause = 10 * time.Millisecond

// listener receives the messages of one queue.
type listener struct {
	queue  string
	poison string // for messages whose process died each time; "" for a poison queue, which abandons them
	dead   string // for messages that failed each time
	store  queues.Store
	work   work
	config Config
	slots  chan struct{} // one for each message in progress
	woken  chan struct{} // signals that a message is visible
	log    *slog.Logger
}

func (w *Worker) listener(queue string, does work) *listener {
	return &listener{queue: queue, poison: queue + poisonSuffix, dead: queue + deadSuffix, store: w.queues, work: does, config: w.config,
		slots: make(chan struct{}, w.config.Concurrency), woken: make(chan struct{}, 1), log: w.log.With("queue", queue)}
}

// poisonListener receives the messages of the poison queue of a queue. All poison listeners of a process share the
// one slot of alone, which isolates a message that crashes the process.
func (w *Worker) poisonListener(queue string, does work, alone chan struct{}) *listener {
	l := w.listener(queue, does)
	l.queue, l.poison, l.slots, l.log = l.poison, "", alone, w.log.With("queue", l.poison)
	l.config.MaxDequeueCount = poisonDequeueCount
	l.config.MaxPollInterval *= poisonPollFactor
	return l
}

// listen receives messages until ctx ends, and returns when all of them are settled. Their work may continue until
// the end of working.
func (l *listener) listen(ctx, working context.Context) {
	var busy sync.WaitGroup
	defer busy.Wait()
	idle, problem := shortestPause, ""
	for {
		free := l.reserve(ctx)
		if free == 0 {
			return // ctx has ended
		}
		messages, err := l.receive(ctx, free)
		for range free - len(messages) {
			<-l.slots
		}
		if err != nil && err.Error() != problem {
			l.log.WarnContext(ctx, "a queue cannot be read: it is tried again", "error", err.Error())
			problem = err.Error()
		} else if err == nil {
			problem = ""
		}
		for _, m := range messages {
			busy.Go(func() {
				defer func() { <-l.slots }()
				l.take(ctx, working, m)
			})
		}
		if len(messages) > 0 {
			idle = shortestPause
			continue
		}
		if l.rest(ctx, idle) {
			idle = shortestPause
		} else {
			idle = durations.Doubled(idle, 1, l.config.MaxPollInterval)
		}
	}
}

// reserve takes free slots for messages; it waits for the first. 0 means that ctx has ended.
func (l *listener) reserve(ctx context.Context) (places int) {
	if ctx.Err() != nil {
		return 0
	}
	select {
	case l.slots <- struct{}{}:
	case <-ctx.Done():
		return 0
	}
	for places = 1; places < queues.MaxReceive; places++ {
		select {
		case l.slots <- struct{}{}:
		default:
			return places
		}
	}
	return places
}

// receive is not canceled when the worker stops: messages may be hidden already, and would wait for their visibility
// timeout.
func (l *listener) receive(ctx context.Context, most int) ([]queues.Message, error) {
	ctx, cancel := detached(ctx)
	defer cancel()
	return l.store.Receive(ctx, l.queue, most, l.config.Visibility)
}

// rest waits for the next poll; woken reports that a message is visible.
func (l *listener) rest(ctx context.Context, d time.Duration) (woken bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-l.woken:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}
