package review

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/orchestrator"
)

const (
	// Name is the name of the orchestrator.
	Name = "dead-letter-review"
	// Task is the name of the human task. Its answer is a Verdict.
	Task = "review dead letter"
	// DefaultLook is the default of Config.Look.
	DefaultLook = 24 * time.Hour
)

// Action is the decision about a dead letter.
type Action string

// The actions. Leave leaves it pending, for good.
const (
	Retry   Action = "retry"
	Resolve Action = "resolve"
	Expire  Action = "expire"
	Leave   Action = "leave"
)

// Verdict is a reviewer's decision about a dead letter.
type Verdict struct {
	Action Action `json:"action"`
	// Notes are the reason, up to 2,000 characters.
	Notes string `json:"notes,omitempty"`
}

// form is the JSON schema of a Verdict.
const form = `{"type":"object","required":["action"],"additionalProperties":false,"properties":{
"action":{"enum":["retry","resolve","expire","leave"],"title":"What is to become of it"},"notes":{"type":"string","title":"Why","maxLength":2000}}}`

// Config configures reviews. Letters and Retrier are required.
type Config struct {
	Letters *engine.DeadLetters
	Retrier *engine.Retrier
	// Roles are the roles of the task; none means everybody.
	Roles []string
	// Look is the interval of the check whether a dead letter was decided otherwise; 0 means DefaultLook.
	Look time.Duration
	// Now is the clock; default time.Now.
	Now func() time.Time
}

// Reviews creates the tasks for dead letters.
type Reviews struct {
	config       Config
	pending      *orchestrator.Activity[letter, bool]
	act          *orchestrator.Activity[deed, string]
	Orchestrator orchestrator.AnyOrchestrator
}

// letter is the payload of the task: it names a dead letter, without its message.
type letter struct {
	Engine        string        `json:"engine"`
	RowKey        string        `json:"rowKey"`
	InstanceID    string        `json:"instanceId,omitempty"`
	CorrelationID string        `json:"correlationId,omitempty"`
	Queue         string        `json:"originalQueue,omitempty"`
	Reason        engine.Reason `json:"detectedReason,omitempty"`
	Error         string        `json:"errorMessage"`
	Attempts      int           `json:"dequeueCount"`
	Failed        time.Time     `json:"lastFailureAtUtc"`
}

// deed is the action that a reviewer chose.
type deed struct {
	Engine string `json:"engine"`
	RowKey string `json:"rowKey"`
	Verdict
	By string `json:"by"`
}

// maxError bounds the error in the task, in bytes.
const maxError = 2000

// The ends of a review that did nothing.
const (
	elsewhere = "decided elsewhere"
	gone      = "deleted"
)

// New makes the orchestrator and its activities.
func New(c Config) (*Reviews, error) {
	if c.Letters == nil || c.Retrier == nil {
		return nil, errors.New("reviews: dead letters and a retrier are required")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Look = cmp.Or(c.Look, DefaultLook)
	r := &Reviews{config: c}
	again := orchestrator.WithRetry(orchestrator.Retry{MaxAttempts: 5, FirstInterval: time.Second, Coefficient: 4, MaxInterval: time.Minute, Jitter: 0.5,
		Retryable: func(err error) bool { return !orchestrator.IsPermanent(err) }})
	r.pending = orchestrator.NewActivity(Name+"-look", r.isPending, again)
	r.act = orchestrator.NewActivity(Name+"-act", r.carryOut, again)
	r.Orchestrator = orchestrator.NewOrchestrator(Name, r.run)
	return r, nil
}

// Activities returns the activities of the orchestrator.
func (r *Reviews) Activities() []orchestrator.AnyActivity {
	return []orchestrator.AnyActivity{r.pending, r.act}
}

// Begin starts the review of a dead letter; it may be repeated.
func (r *Reviews) Begin(ctx context.Context, rt *orchestrator.Runtime, d engine.DeadLetter) error {
	input, err := json.Marshal(letter{d.Engine, d.RowKey, d.InstanceID, d.CorrelationID, d.OriginalQueue, d.DetectedReason, cut(d.ErrorMessage), d.DequeueCount, d.LastFailureAtUtc})
	if err != nil {
		return fmt.Errorf("review of dead letter %s/%s: %w", d.Engine, d.RowKey, err)
	}
	sum := sha256.Sum256([]byte(d.Engine + "\n" + d.RowKey))
	_, err = rt.Start(ctx, orchestrator.Start{ID: "review-" + hex.EncodeToString(sum[:16]), Orchestrator: Name, Input: input, CorrelationID: d.CorrelationID})
	if err != nil && !errors.Is(err, orchestrator.ErrExists) {
		return fmt.Errorf("review of dead letter %s/%s: %w", d.Engine, d.RowKey, err)
	}
	return nil
}

func cut(text string) string {
	if len(text) <= maxError {
		return text
	}
	return strings.ToValidUTF8(text[:maxError], "") + "..." // the cut may have split a character
}

// run creates the task, and regularly checks whether it is still needed.
func (r *Reviews) run(ctx *orchestrator.Context, l letter) (string, error) {
	asked := orchestrator.AskPerson[Verdict](ctx, orchestrator.HumanTask{Name: Task, Roles: r.config.Roles, Payload: l, Form: json.RawMessage(form)})
	for {
		look := orchestrator.Timer(ctx, r.config.Look)
		if orchestrator.Any(ctx, asked, look) == 0 {
			orchestrator.Cancel(ctx, look)
			break
		}
		if _, err := look.Await(); err != nil {
			return "", err
		}
		pending, err := r.pending.Call(ctx, letter{Engine: l.Engine, RowKey: l.RowKey}).Await()
		if err == nil && !pending {
			orchestrator.Cancel(ctx, asked)
			return elsewhere, nil
		}
		if errors.Is(err, orchestrator.ErrCanceled) {
			return "", err
		}
	}
	said, err := asked.Await()
	if err != nil {
		return "", err
	}
	if said.Output.Action == Leave {
		return string(Leave), nil
	}
	return r.act.Call(ctx, deed{l.Engine, l.RowKey, said.Output, said.Who()}).Await()
}

func (r *Reviews) isPending(ctx context.Context, l letter) (bool, error) {
	d, err := r.config.Letters.Get(ctx, l.Engine, l.RowKey)
	if errors.Is(err, engine.ErrNotFound) {
		return false, nil
	}
	return err == nil && d.Status == engine.StatusPending, err
}

// carryOut carries out the decision. Repeating an action of an earlier attempt has the same result.
func (r *Reviews) carryOut(ctx context.Context, d deed) (string, error) {
	var err error
	switch d.Action {
	case Retry:
		_, err = r.config.Retrier.Retry(ctx, d.Engine, d.RowKey, d.By)
	case Resolve, Expire:
		status := map[Action]engine.DeadLetterStatus{Resolve: engine.StatusResolved, Expire: engine.StatusExpired}[d.Action]
		_, err = r.config.Letters.Decide(ctx, d.Engine, d.RowKey, engine.Decision{Status: status, Notes: &d.Notes, By: d.By, At: r.config.Now()})
	case Leave:
	default:
		return "", orchestrator.Permanent(fmt.Errorf("there is no action %.32q", d.Action))
	}
	switch {
	case errors.Is(err, engine.ErrState):
		return elsewhere, nil
	case errors.Is(err, engine.ErrNotFound):
		return gone, nil
	case errors.Is(err, engine.ErrNotRetryable):
		return "", orchestrator.Permanent(err)
	case err != nil:
		return "", err
	}
	return string(d.Action), nil
}
