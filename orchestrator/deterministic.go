package orchestrator

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"unicode/utf8"

	"github.com/google/uuid"
)

// NewUUID returns a UUID (version 5) that is the same in every replay and differs from the result of every other call.
func (c *Context) NewUUID() uuid.UUID {
	x := c.execution
	x.uuids++
	return uuid.NewSHA1(uuidSpace, fmt.Appendf(nil, "%s/%d/%d", x.id, x.base, x.uuids))
}

// uuidSpace is the name space of the UUIDs that NewUUID returns.
var uuidSpace = uuid.MustParse("6a1f5c52-6a0e-5f43-8a55-1de0f2f6c0b4")

// Rand returns a source of random numbers that are the same in every replay. They are predictable: do not use them for
// secrets.
func (c *Context) Rand() *rand.Rand {
	x := c.execution
	if x.random == nil {
		h := fnv.New64a()
		h.Write([]byte(x.id))
		x.random = rand.New(rand.NewPCG(h.Sum64(), uint64(x.base)))
	}
	return x.random
}

// SideEffect runs fn once and records its result; a replay gets the recorded value. It is for small values that are
// not deterministic and cannot fail. fn runs again when the turn was not committed: after a crash, or when a start
// finds that the orchestration exists. Work that can fail or takes time belongs in an activity.
func SideEffect[T any](ctx *Context, name string, fn func() T) (T, error) {
	var out T
	payload, err := ctx.execution.sideEffect(name, func() (json.RawMessage, error) { return encodePayload(fn()) })
	if err == nil {
		err = json.Unmarshal(payload, &out)
	}
	if err != nil {
		return out, Permanent(fmt.Errorf("side effect %s: %w", name, err))
	}
	return out, nil
}

// Patched reports whether the change of this name applies to the orchestration, so that code can change under running
// orchestrations. Those that passed this place before the change get false for ever, all others get true. Keep the old
// branch until no orchestration that gets false is left.
func (c *Context) Patched(name string) bool { return c.execution.patched(name) }

// SetStatus shows v, as JSON of at most 16 KiB, in the column CustomStatus of the status row, from the next round on.
func (c *Context) SetStatus(v any) error {
	text, err := encodePayload(v)
	switch {
	case err != nil:
	case !utf8.Valid(text):
		err = errors.New("it is not UTF-8")
	case len(text) > maxCustomStatus:
		err = fmt.Errorf("%d bytes of JSON, at most %d: show a reference to what is large", len(text), maxCustomStatus)
	}
	if err != nil {
		return Permanent(fmt.Errorf("custom status: %w", err))
	}
	c.execution.customStatus = string(text)
	return nil
}

const maxCustomStatus = 16 << 10

// continueAsNew is the error by which an orchestrator requests its next execution.
type continueAsNew struct {
	input any
}

// Error is only used if the error is logged by mistake.
func (continueAsNew) Error() string { return "the orchestration continues as new" }

// ContinueAsNew returns an error that, returned by an orchestrator, starts the orchestration over with this input and
// an empty history. It is for loops that never end. Calls that were not awaited are completed first.
func ContinueAsNew(input any) error { return continueAsNew{input} }
