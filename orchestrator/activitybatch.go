package orchestrator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/internal/outage"
	"github.com/vibedata/roundhouse/internal/payload"
	"github.com/vibedata/roundhouse/queues"
)

// batchLimit bounds the activities of one message.
const batchLimit = 50

// activityBatch is a message of the activity queue: activities of one execution that any process may run.
type activityBatch struct {
	RuntimeProvider string         `json:"runtimeProvider"`
	Orchestration   string         `json:"workflowInstanceId"`
	Execution       int            `json:"execution"`
	CorrelationID   string         `json:"correlationId"`
	TenantID        string         `json:"tenantId,omitempty"`
	Trace           string         `json:"traceparent,omitempty"`
	Activities      []activityCall `json:"activities,omitempty"`
	Blob            string         `json:"blob,omitempty"` // holds the activities instead
}

// activityCall is one activity of a batch. Times are in microseconds.
type activityCall struct {
	Task      int             `json:"task"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	Attempt   int             `json:"attempt"`
	Timeout   int64           `json:"timeout,omitempty"`
	Heartbeat int64           `json:"heartbeat,omitempty"`
	Progress  json.RawMessage `json:"progress,omitempty"`
}

// activityResult is the result of an attempt in another process.
type activityResult struct {
	Execution int             `json:"execution"`
	Task      int             `json:"task"`
	Attempt   int             `json:"attempt"`
	Output    json.RawMessage `json:"output,omitempty"`
	Failure   *Failure        `json:"failure,omitempty"`
	Progress  json.RawMessage `json:"progress,omitempty"`
}

// messageBytes is the approximate size of one message, with the blob that it may name.
const messageBytes = 16 << 20

// sendActivities sends activities to other processes, many in a message.
func (d *driver) sendActivities(ctx context.Context, e event) error {
	var calls []activityCall
	for _, number := range e.target().Tasks {
		if t := d.execution.task(number); t != nil && t.sent && t.open() {
			calls = append(calls, activityCall{Task: number, Name: t.name, Input: t.input, Attempt: t.attempts + 1,
				Timeout: t.options.timeout.Microseconds(), Heartbeat: t.options.heartbeat.Microseconds(), Progress: t.progress})
		}
	}
	b := activityBatch{RuntimeProvider: provider, Orchestration: d.start.ID, Execution: d.execution.number, CorrelationID: d.start.CorrelationID, TenantID: d.start.TenantID, Trace: d.start.Trace}
	return d.rt.sendBatches(ctx, b, calls)
}

// sendBatches sends the activities in as many messages as necessary; b is the template.
func (r *Runtime) sendBatches(ctx context.Context, b activityBatch, calls []activityCall) error {
	var errs []error
	for part := range batches(calls, func(c activityCall) int { return len(c.Input) + len(c.Progress) }) {
		b.Activities, b.Blob = part, ""
		errs = append(errs, r.sendBatch(ctx, b))
	}
	return errors.Join(errs...)
}

// batches divides a list into parts that fit one message.
func batches[T any](all []T, size func(T) int) iter.Seq[[]T] {
	return func(yield func([]T) bool) {
		for len(all) > 0 {
			n, bytes := 0, 0
			for n < min(len(all), batchLimit) && (n == 0 || bytes+size(all[n]) <= messageBytes) {
				bytes += size(all[n])
				n++
			}
			if !yield(all[:n]) {
				return
			}
			all = all[n:]
		}
	}
}

func (r *Runtime) sendBatch(ctx context.Context, b activityBatch) error {
	body, err := marshal(b)
	if err == nil && len(body) > queues.MaxBody {
		if b.Blob, err = r.claim(ctx, b.Orchestration, "", b.Activities); err == nil {
			b.Activities = nil
			body, err = marshal(b)
		}
	}
	if err == nil {
		_, err = r.config.Queues.Send(ctx, r.config.ActivityQueue, body, 0)
	}
	if err != nil {
		return fmt.Errorf("hand out activities of orchestration %s: %w", b.Orchestration, err)
	}
	return nil
}

// ErrBatch: the message of the activity queue is invalid, and a redelivery cannot help.
var ErrBatch = errors.New("not a batch of activities")

// RunActivities handles a message of the activity queue: it runs the activities and signals their results. A nil error
// means that the message may be acknowledged. Activities that do not end within ctx are sent again.
func (r *Runtime) RunActivities(ctx context.Context, body []byte) error {
	b, err := r.readBatch(ctx, body)
	if err != nil {
		return err
	}
	claimed := b.Blob
	b, canceled, err := r.dropUnwanted(ctx, b)
	if err == nil {
		err = r.reportResults(ctx, b, canceled, nil)
	}
	if err != nil {
		return err
	}
	if len(b.Activities) == 0 {
		r.count(func(c *Counts) { c.Stale++ })
		return r.dropBlob(ctx, b.Orchestration, claimed)
	}
	invocation := ctx
	var mu sync.Mutex
	var done []activityResult
	var left []activityCall
	var broken []error
	var all sync.WaitGroup
	for _, call := range b.Activities {
		all.Go(func() {
			ctx, stop := context.WithCancelCause(ctx)
			defer stop(nil)
			res := r.attempt(r.batched(ctx, b, call, func(json.RawMessage) {
				if err := r.checkWanted(ctx, b); err != nil {
					stop(err)
				}
			}))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case res.broken:
				broken = append(broken, res.err)
			case res.err != nil && invocation.Err() != nil:
				if res.progress != nil {
					call.Progress = res.progress
				}
				left = append(left, call)
			default:
				done = append(done, r.resultOf(b, call, res))
			}
		})
	}
	all.Wait()
	if err := errors.Join(broken...); err != nil {
		return err
	}
	ctx, cancel := outage.Finish(ctx, storeTimeout)
	defer cancel()
	if err := r.reportResults(ctx, b, done, left); err != nil {
		return err
	}
	return r.dropBlob(ctx, b.Orchestration, b.Blob)
}

// reportResults signals results and sends the remaining activities again.
func (r *Runtime) reportResults(ctx context.Context, b activityBatch, done []activityResult, left []activityCall) error {
	for results := range batches(done, func(a activityResult) int { return len(a.Output) + len(a.Progress) }) {
		s := Signal{SignalID: uuid.NewString(), InstanceID: b.Orchestration, Type: InternalContinue, Payload: Payload{Results: results}}
		if err := r.send(ctx, s, 0); err != nil {
			return err
		}
	}
	if len(left) == 0 {
		return nil
	}
	if len(done) == 0 {
		return fmt.Errorf("activities of orchestration %s: the time ran out before one of them ended: %w", b.Orchestration, context.DeadlineExceeded)
	}
	return r.sendBatches(ctx, b, left)
}

// GiveUpActivities handles a message of the activity queue that the host has abandoned: its activities fail with this
// reason, and the orchestration decides how to continue.
func (r *Runtime) GiveUpActivities(ctx context.Context, body []byte, reason string) error {
	b, err := r.readBatch(ctx, body)
	if err != nil {
		return err
	}
	reason = errorText(reason)
	var done []activityResult
	for _, call := range b.Activities {
		done = append(done, activityResult{Execution: b.Execution, Task: call.Task, Attempt: call.Attempt,
			Failure: &Failure{Message: reason, Code: "GivenUp"}})
	}
	if err := r.reportResults(ctx, b, done, nil); err != nil {
		return err
	}
	return r.dropBlob(ctx, b.Orchestration, b.Blob)
}

func (r *Runtime) readBatch(ctx context.Context, body []byte) (activityBatch, error) {
	b, err := decodeBatch(body)
	if err != nil || b.Blob == "" {
		return b, err
	}
	text, err := r.config.Blobs.Get(ctx, r.config.Container, blobName(b.Orchestration, b.Blob))
	if errors.Is(err, blobs.ErrNotFound) {
		return b, nil // the orchestration was purged, so the batch is empty
	}
	if err == nil {
		err = json.Unmarshal(text, &b.Activities)
	}
	if err != nil {
		return b, fmt.Errorf("activities of orchestration %s: %w", b.Orchestration, err)
	}
	return b, nil
}

func decodeBatch(body []byte) (activityBatch, error) {
	var b activityBatch
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(&b); err != nil {
		return b, fmt.Errorf("%w: %w", ErrBatch, payload.Explain(err))
	}
	if b.Orchestration == "" || b.Execution < 1 || b.RuntimeProvider != provider || (len(b.Activities) == 0) == (b.Blob == "") || !validBlob(b.Blob) {
		return b, fmt.Errorf("%w: workflowInstanceId, execution, the runtime provider %s and activities are required", ErrBatch, provider)
	}
	return b, nil
}

// dropUnwanted keeps only those activities of a batch that the orchestration still waits for. The others were done
// before or are no longer needed; running them again could repeat their effects after an undo. It returns results for
// the canceled ones, because an undo may wait for the report that no process runs them.
func (r *Runtime) dropUnwanted(ctx context.Context, b activityBatch) (_ activityBatch, canceled []activityResult, err error) {
	all, err := r.journal.load(ctx, b.Orchestration)
	if err != nil {
		return b, nil, err
	}
	var calls []Call
	if len(all) > 0 && all[len(all)-1].number == b.Execution && all[len(all)-1].end() == nil {
		calls = summarize(b.Orchestration, all[len(all)-1]).Calls
	}
	b.Activities = slices.DeleteFunc(slices.Clone(b.Activities), func(a activityCall) bool {
		if a.Task < 1 || a.Task > len(calls) {
			return true
		}
		c := calls[a.Task-1]
		if c.wasCanceled() {
			canceled = append(canceled, activityResult{Execution: b.Execution, Task: a.Task, Attempt: a.Attempt, Failure: c.Failure})
		}
		return !c.EndedAt.IsZero() || c.Attempts+1 != a.Attempt
	})
	return b, canceled, nil
}

// checkWanted is called from time to time by an attempt that sends heartbeats. An error ends the attempt.
func (r *Runtime) checkWanted(ctx context.Context, b activityBatch) error {
	s, err := r.Status(ctx, b.Orchestration)
	if errors.Is(err, ErrNotFound) || err == nil && (s.Ended() || s.Execution > b.Execution) {
		return fmt.Errorf("orchestration %s does not wait for it any more: %w", b.Orchestration, ErrCanceled)
	}
	return nil
}

// batched returns an attempt at one of the activities. Its progress is not recorded, because another process has the
// rounds. Instead, a failure and a message that is sent again carry it.
func (r *Runtime) batched(ctx context.Context, b activityBatch, c activityCall, beat func(progress json.RawMessage)) *attempt {
	trace := b.Trace
	if trace != "" && r.config.Tracer != nil {
		trace = r.config.Tracer.Within(trace, CallSpan(b.Orchestration, b.Execution, c.Task, c.Attempt))
	}
	a := &attempt{name: c.Name, input: c.Input, timeout: time.Duration(c.Timeout) * time.Microsecond, heartbeat: time.Duration(c.Heartbeat) * time.Microsecond,
		recorder: recorderFunc(beat),
		info: ActivityInfo{Orchestration: b.Orchestration, Execution: b.Execution, Task: c.Task, Attempt: c.Attempt,
			CorrelationID: b.CorrelationID, TenantID: b.TenantID, Progress: c.Progress,
			Trace: trace}}
	a.init(ctx)
	return a
}

type recorderFunc func(progress json.RawMessage)

func (f recorderFunc) record(_ *attempt, progress json.RawMessage) { f(progress) }

func (r *Runtime) resultOf(b activityBatch, c activityCall, res result) activityResult {
	out := activityResult{Execution: b.Execution, Task: c.Task, Attempt: c.Attempt, Output: res.output, Progress: res.progress}
	if res.err != nil {
		out.Failure = failureOf(res.err)
		if a := r.activities[c.Name]; a != nil {
			a.configured().errors.record(out.Failure, res.err)
		}
	}
	return out
}

// classifyResults reports whether any of the results is new.
func (x *execution) classifyResults(results []activityResult) signalClass {
	class := signalKnown
	for _, r := range results {
		if x.callFor(r) != nil {
			class = signalNew
		}
		if x.returnedBy(r) != nil {
			class = signalNew
		}
	}
	return class
}

// callFor returns the call that waits for the result; nil if none does.
func (x *execution) callFor(r activityResult) *task {
	t := x.task(r.Task)
	if r.Execution != x.number || t == nil || t.done || t.kind != activityTask || t.attempts+1 != r.Attempt {
		return nil
	}
	return t
}

// returnedBy returns the canceled activity that the result reports as returned; nil for none.
func (x *execution) returnedBy(r activityResult) *task {
	if t := x.task(r.Task); t != nil && r.Execution == x.number && t.elsewhere && !t.returned {
		return t
	}
	return nil
}

func (d *driver) takeResults(results []activityResult) error {
	for _, r := range results {
		if t := d.execution.returnedBy(r); t != nil {
			if err := d.learnReturn(t); err != nil {
				return err
			}
			continue
		}
		t := d.execution.callFor(r)
		if t == nil {
			continue
		}
		var err error
		if r.Failure == nil {
			err = d.learn(event{Kind: activityCompleted, Task: t.number, Payload: compact(r.Output)})
		} else {
			err = d.learnFailure(t, r.Failure, r.Progress)
		}
		if err != nil {
			return err
		}
		t.foreign = false // this driver is responsible for a retry
	}
	return nil
}

// resend makes dispatch send or run activities with possibly lost messages again.
func (c *executor) resend() {
	for _, t := range c.execution.tasks {
		if t.sent && t.open() {
			c.execution.recall(t)
			t.running = true
			c.execution.runningCount++
		}
	}
}
