package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"reflect"
	"runtime/debug"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/vibedata/roundhouse/internal/redact"
)

// These errors can be returned by Runtime.Run and Runtime.Get. They leave the orchestration unchanged.
var (
	// ErrNotFound: no orchestration has that id.
	ErrNotFound = errors.New("no such orchestration")
	// ErrElsewhere: another process committed a round first and continues the orchestration. Retry later.
	ErrElsewhere = errors.New("the orchestration runs in another process")
	// ErrConflict: the id belongs to another orchestrator or to another correlation id.
	ErrConflict = errors.New("the orchestration id is taken")
	// ErrOtherTenant: the orchestration belongs to another tenant. It is an ErrConflict, too.
	ErrOtherTenant = errors.New("it belongs to another tenant")
	// ErrOtherWork: the orchestration was started with the same correlation id for other work (Start.Same), or with
	// another input. It is an ErrConflict, too, and from Runtime.Start an ErrExists.
	ErrOtherWork = errors.New("it was started for other work with the same correlation id")
	// ErrUnknownOrchestrator: no orchestrator of that name is registered in this process.
	ErrUnknownOrchestrator = errors.New("unknown orchestrator: add it to Config.Orchestrators and run it again")
	// ErrUnknownActivity: the orchestrator called an activity that is not registered in this process. The
	// orchestration waits. Add the activity to Config.Activities and run the orchestration again.
	ErrUnknownActivity = errors.New("unknown activity: add it to Config.Activities and run it again")
	// ErrExists: the id is taken by a different start.
	ErrExists = errors.New("an orchestration of that id exists")
	// ErrActive: the operation requires an orchestration that has ended.
	ErrActive = errors.New("the orchestration has not ended")
	// ErrEnded: the orchestration has ended in a way that does not allow the operation.
	ErrEnded = errors.New("the orchestration has ended")
	// ErrCanceled: the wait was interrupted, by Cancel or because the orchestration was canceled.
	ErrCanceled = errors.New("canceled")
	// ErrNewerSchema: the rounds were written by a newer version of this program. Nothing is changed: deploy that version.
	ErrNewerSchema = errors.New("written by a newer version: deploy that or a later one, and run it again")
	// ErrNoSignals: the runtime has no queues, so it cannot send signals to an orchestration.
	ErrNoSignals = errors.New("the runtime has no queues")
	// errPayloadGone: the blob with the payload of a signal is deleted.
	errPayloadGone = fmt.Errorf("its payload is gone: raise the event again: %w", ErrNotFound)
	// errNoActivity: a function for activities was called with another context.
	errNoActivity = errors.New("not the context of a running activity")
	// ErrPayload: the value cannot be stored, because it has more than 60 MiB of JSON, or arrays and objects nested
	// more than 500 deep.
	ErrPayload = errors.New("a payload cannot be stored")
	// ErrStalled: the code cannot continue the orchestration, which waits until the code is fixed. The wrapped error
	// is the cause.
	ErrStalled = errors.New("the orchestration is stalled")
	// ErrCorrupt: the stored rounds cannot be read back; the message names the row.
	ErrCorrupt = errors.New("stored rounds are damaged: restore them and run it again")
)

// Failure is an error as the rounds store it.
type Failure struct {
	// Message is the text of the error.
	Message string `json:"message"`
	// Code is the kind of error: the Go type of the innermost error, or "panic".
	Code string `json:"code,omitempty"`
	// Permanent marks an error that another attempt cannot fix.
	Permanent bool `json:"permanent,omitempty"`
	// Stack is the stack trace of a panic.
	Stack string `json:"stack,omitempty"`
	// Type and Detail hold an error of a type that WithError names.
	Type   string          `json:"type,omitempty"`
	Detail json.RawMessage `json:"detail,omitempty"`
}

// Error returns the message.
func (f *Failure) Error() string { return f.Message }

// ActivityError is returned by Await for an activity that failed for good: its last attempt failed, or it failed
// permanently.
type ActivityError struct {
	Activity string
	// Attempt is the number of the attempt that failed last; the first is 1.
	Attempt int
	Failure Failure

	cause error // the error itself, if WithError names its type
}

// Error returns the activity and its failure message.
func (e *ActivityError) Error() string {
	return fmt.Sprintf("activity %s (attempt %d): %s", e.Activity, e.Attempt, e.Failure.Message)
}

// Unwrap returns the recorded failure, and the error itself if its type was named by WithError.
func (e *ActivityError) Unwrap() []error {
	if e.cause == nil {
		return []error{&e.Failure}
	}
	return []error{&e.Failure, e.cause}
}

// OrchestrationError is returned by Await for a sub-orchestration that failed for good.
type OrchestrationError struct {
	Orchestrator string
	// ID is the sub-orchestration's id.
	ID      string
	Failure Failure

	cause error // the error itself, if WithError names its type
}

// Error returns the orchestrator and its failure message.
func (e *OrchestrationError) Error() string {
	return fmt.Sprintf("orchestrator %s (%s): %s", e.Orchestrator, e.ID, e.Failure.Message)
}

// Unwrap returns the recorded failure, and the error itself if its type was named by WithError.
func (e *OrchestrationError) Unwrap() []error {
	if e.cause == nil {
		return []error{&e.Failure}
	}
	return []error{&e.Failure, e.cause}
}

// DeterminismError reports that a replay decided differently from the recorded decisions. The code changed under a
// running orchestration, or is not deterministic. The orchestration is stalled, not damaged. It continues with code
// that decides as recorded.
type DeterminismError struct {
	Orchestration string
	Execution     int
	Round         int
	// Recorded and Decided describe the first decision that differs; "nothing" where one side has none.
	Recorded string
	Decided  string
}

// Error returns the recorded and the replayed decision.
func (e *DeterminismError) Error() string {
	return fmt.Sprintf("orchestration %s is stalled: replay of execution %d, round %d decided %s, but recorded is %s: "+
		"run it with the code that it was started with; a change under way is made with Context.Patched, or as another version (WithVersion)",
		e.Orchestration, e.Execution, e.Round, e.Decided, e.Recorded)
}

// permanent marks an error that no further attempt can fix.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

// Permanent marks err as an error that another attempt cannot fix: an activity is not retried, and an engine's message
// is dead-lettered immediately. Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return permanent{err}
}

// IsPermanent reports whether err, or an error that it wraps, was marked with Permanent, before or after recording.
func IsPermanent(err error) bool {
	return walk(err, func(e error) bool {
		if f, ok := e.(*Failure); ok {
			return f != nil && f.Permanent
		}
		_, marked := e.(permanent)
		return marked
	})
}

// failureOf converts an error of user code to a Failure. The Error method may panic, for example on a nil pointer;
// then the panic is the failure.
func failureOf(err error) (f *Failure) {
	defer func() {
		if p := recover(); p != nil {
			f = &Failure{Message: fmt.Sprintf("panic in the text of an error: %v", p), Code: "panic", Stack: string(debug.Stack())}
		}
		f = f.clean()
	}()
	if recorded, ok := err.(*Failure); ok && recorded != nil {
		same := *recorded
		return &same
	}
	f = &Failure{Message: errorText(err.Error()), Code: errorCode(err), Permanent: IsPermanent(err)}
	if inner, ok := errors.AsType[*Failure](err); ok { // a typed error stays typed when it is wrapped
		f.Type, f.Detail = inner.Type, inner.Detail
	}
	if errors.Is(err, ErrCanceled) {
		f.Code = codeCanceled
	}
	if p, ok := errors.AsType[*panicError](err); ok {
		f.Code, f.Stack = "panic", p.stack
	}
	return f
}

// clean returns the failure in its stored form, without secrets. It runs before the code sees the failure for the
// first time, so that live code and replays see the same.
func (f *Failure) clean() *Failure {
	if f == nil {
		return nil
	}
	same := *f
	same.Message, same.Code = redact.Text(cleanText(f.Message)), redact.Text(cleanText(f.Code))
	same.Stack, same.Type = redact.Text(cleanText(f.Stack)), cleanText(f.Type)
	same.Detail = redact.JSON(compact(f.Detail))
	return &same
}

// maxMessage bounds the stored text of an error, in bytes.
const maxMessage = 16 << 10

// errorText returns an error's text without secrets, for the rounds. A long text is cut before the redaction, too,
// which bounds the cost. The rest of a secret that this cut may have split is dropped from the end.
func errorText(text string) string {
	const most, unsure = 4 * maxMessage, 4 << 10
	if len(text) <= most {
		return clip(redact.Text(text))
	}
	clean := redact.Text(strings.ToValidUTF8(text[:most], ""))
	return cut(clean, min(maxMessage, max(0, len(clean)-unsure)), len(text))
}

func clip(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	return cut(text, maxMessage, len(text))
}

// cut returns the beginning of a text, with the length of the whole.
func cut(text string, at, whole int) string {
	return fmt.Sprintf("%s... (%d bytes)", strings.ToValidUTF8(text[:at], ""), whole)
}

// These are the codes of errors that have none of their own, for operators and for filters.
const (
	codePlain   = "error"   // it has nothing but a text
	codeTimeout = "timeout" // an operation took longer than allowed
	codeNetwork = "network" // a connection could not be made, or broke
)

// errorCode returns a word for an error: its recorded code, timeout or network, or the declared name of the innermost
// error that has one, such as ResponseError.
func errorCode(err error) string {
	if f, ok := errors.AsType[*Failure](err); ok && f.Code != "" {
		return f.Code
	}
	_, late := errors.AsType[*timeoutError](err)
	if trouble, ok := errors.AsType[net.Error](err); late || ok && trouble.Timeout() || errors.Is(err, context.DeadlineExceeded) {
		return codeTimeout
	}
	if _, ok := errors.AsType[*net.OpError](err); ok {
		return codeNetwork
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return codeNetwork
	}
	code := codePlain
	for {
		inner := errors.Unwrap(err)
		if many, ok := err.(interface{ Unwrap() []error }); ok && len(many.Unwrap()) > 0 {
			inner = many.Unwrap()[0]
		}
		if name, ok := declaredName(err); ok {
			code = name
		}
		if inner == nil {
			return code
		}
		err = inner
	}
}

// declaredName returns the name of the type of an error, without its package, and whether it is exported.
func declaredName(err error) (name string, ok bool) {
	t := reflect.TypeOf(err)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	first, _ := utf8.DecodeRuneInString(t.Name())
	return t.Name(), unicode.IsUpper(first)
}

// panicError is a panic of user code, as an error.
type panicError struct {
	value any
	stack string
}

func (p *panicError) Error() string { return fmt.Sprintf("panic: %v", p.value) }

// timeoutError reports that an activity did not return within its timeout.
type timeoutError struct{ after time.Duration }

func (e *timeoutError) Error() string { return fmt.Sprintf("no result within %v", e.after) }
