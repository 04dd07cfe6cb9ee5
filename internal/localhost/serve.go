package localhost

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"
)

// serve runs everything in the order of the dependencies: the handler first and last, the triggers between.
func (h *Host) serve(ctx context.Context, listening net.Listener) error {
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	handler, killHandler := context.WithCancel(context.WithoutCancel(ctx))
	defer killHandler()

	var processes sync.WaitGroup
	var failure error // of the handler; read after processes is done
	if h.needsHandler() {
		processes.Go(func() {
			failure = h.supervisor.run(handler)
			giveUp(failure)
		})
	} else {
		h.supervisor.set(exited)
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 30 * time.Second, ErrorLog: h.serverLog(), DisableGeneralOptionsHandler: true}
	processes.Go(func() {
		if err := server.Serve(listening); !errors.Is(err, http.ErrServerClosed) {
			giveUp(fmt.Errorf("serve: %w", err))
		}
	})

	var triggers sync.WaitGroup
	if _, err := h.supervisor.await(ctx); err == nil {
		h.startTriggers(ctx, &triggers)
		close(h.ready)
	}
	<-ctx.Done()
	h.stop(server, &triggers, killHandler)
	processes.Wait()
	h.invoker.pending.Wait()
	h.supervisor.transport.CloseIdleConnections()
	if failure != nil {
		return fmt.Errorf("local host: %w", failure)
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) && !errors.Is(cause, context.DeadlineExceeded) {
		return fmt.Errorf("local host: %w", cause)
	}
	return nil
}

// serverLog returns the log of net/http.
func (h *Host) serverLog() *log.Logger {
	return slog.NewLogLogger(h.config.Log.Handler(), slog.LevelWarn)
}

// stop asks the handler to end, and gives it and the running invocations a moment. Then it kills the handler, which
// ends them all.
func (h *Host) stop(server *http.Server, triggers *sync.WaitGroup, killHandler func()) {
	grace, cancel := context.WithTimeout(context.Background(), h.config.StopGrace)
	defer cancel()
	h.mu.Lock()
	h.stopping = true
	h.mu.Unlock()
	asked := h.supervisor.terminate()
	quiet := make(chan struct{})
	go func() {
		triggers.Wait()
		h.work.Wait()
		close(quiet)
	}()
	_ = server.Shutdown(grace)
	select {
	case <-quiet:
	case <-grace.Done():
	}
	if asked { // after its answers it still has work to do
		select {
		case <-h.supervisor.ended:
		case <-grace.Done():
		}
	}
	killHandler()
	_ = server.Close()
	<-quiet
}

// enter counts work that stopping waits for; false means that it is too late. Call leave at its end.
func (h *Host) enter() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.stopping {
		h.work.Add(1)
	}
	return !h.stopping
}

func (h *Host) leave() { h.work.Done() }

func (h *Host) needsHandler() bool {
	for _, f := range h.functions {
		if f.runnable() {
			return true
		}
	}
	return false
}

// startTriggers starts the listeners and timers; HTTP is served already.
func (h *Host) startTriggers(ctx context.Context, triggers *sync.WaitGroup) {
	ctx, cancel := context.WithCancel(ctx)
	triggers.Go(func() {
		defer cancel()
		select {
		case <-h.drain:
		case <-ctx.Done():
		}
	})
	for _, f := range h.functions {
		if !f.runnable() {
			continue
		}
		switch f.trigger.Type {
		case queueTrigger:
			triggers.Go(func() { h.listener(f).listen(ctx) })
		case timerTrigger:
			triggers.Go(func() { h.timer(f).listen(ctx) })
		}
	}
}

func (h *Host) listener(f *function) *listener {
	return &listener{
		function: f.name, queue: f.trigger.QueueName, store: h.config.Queues, options: h.host.queues,
		visibility: h.config.Visibility, shortest: h.config.MinPolling,
		run: func(ctx context.Context, d queueDelivery) (string, error) {
			h.running.Add(1)
			defer h.running.Add(-1)
			id := uuid.NewString()
			envelope, err := queueEnvelope(f, d, h.config.Now())
			if err == nil {
				_, err = h.run(ctx, f, id, envelope)
			}
			return id, err
		},
		observe: h.observe, now: h.config.Now, log: h.config.Log,
	}
}

func (h *Host) timer(f *function) *timer {
	schedule, _ := parseSchedule(f.trigger.Schedule) // checked when the function was loaded
	t := &timer{function: f.name, schedule: schedule, runOnStartup: f.trigger.RunOnStartup, zone: h.zone, now: h.config.Now, log: h.config.Log}
	if monitor := f.trigger.UseMonitor; (monitor == nil || *monitor) && schedule.monitored(h.config.Now()) {
		t.status = newStatusBlob(h.config.Blobs, h.id, f.name)
	}
	t.run = func(ctx context.Context, status *timerStatus, pastDue bool) {
		h.observed(f, func(id string) error {
			_, err := h.run(ctx, f, id, timerEnvelope(f, schedule, status, pastDue, h.config.Now()))
			return err
		})
	}
	return t
}

// observed runs one invocation without a queue message.
func (h *Host) observed(f *function, run func(id string) error) {
	h.running.Add(1)
	defer h.running.Add(-1)
	id, begin := uuid.NewString(), h.config.Now()
	invocation := Invocation{ID: id, Function: f.name, Trigger: f.trigger.Type, Outcome: Succeeded}
	if invocation.Err = run(id); invocation.Err != nil {
		invocation.Outcome = Failed
	}
	invocation.Duration = h.config.Now().Sub(begin)
	h.observe(invocation)
}

// observe logs an invocation and notifies the observer.
func (h *Host) observe(i Invocation) {
	logger := h.config.Log.With("function", i.Function, "invocation", i.ID, "durationMs", i.Duration.Milliseconds())
	if i.MessageID != "" {
		logger = logger.With("message", i.MessageID, "dequeueCount", i.DequeueCount)
	}
	switch violation := i.Violation(); {
	case violation != nil:
		logger.Error("handler broke the invocation protocol", "rule", violation.Rule, "error", i.Err)
	case i.Err != nil:
		logger.Error("invocation failed", "outcome", i.Outcome, "error", i.Err)
	default:
		logger.Info("invocation succeeded")
	}
	h.config.OnInvocation(i)
}

// run is one invocation by the JSON protocol: it sends the envelope and applies the answer. The value is the one for
// the function's http binding, nil without one.
func (h *Host) run(ctx context.Context, f *function, id string, e envelope) (httpValue []byte, err error) {
	result, err := h.invoker.invoke(context.WithoutCancel(ctx), f.name, id, e)
	if err != nil {
		return nil, err
	}
	for _, line := range result.Logs {
		h.config.Log.Info(line, "function", f.name, "invocation", id, "source", "handler")
	}
	return applyOutputs(ctx, f, result, h.config.Queues)
}
