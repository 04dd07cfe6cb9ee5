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

// NewUUID is a UUID (version 5) that is the same in every replay and different in every other place.
func (c *Context) NewUUID() uuid.UUID {
	x := c.execution
	x.uuids++
	return uuid.NewSHA1(uuidSpace, fmt.Appendf(nil, "%s/%d/%d", x.id, x.base, x.uuids))
}

// uuidSpace is the name space of NewUUID.
var uuidSpace = uuid.MustParse("6a1f5c52-6a0e-5f43-8a55-1de0f2f6c0b4")

// Rand is a source of random numbers that are the same in every replay. They are predictable: not for secrets.
func (c *Context) Rand() *rand.Rand {
	x := c.execution
	if x.random == nil {
		h := fnv.New64a()
		h.Write([]byte(x.id))
		x.random = rand.New(rand.NewPCG(h.Sum64(), uint64(x.base)))
	}
	return x.random
}

// SideEffect runs fn once and records what it returns; a replay gets the recorded value. It is for small things that are
// not deterministic and cannot fail. It runs again when the turn is not committed: after a crash, or when a start finds
// that the orchestration exists. What can fail, or takes time, belongs in an activity.
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

// Patched reports whether the change of this name holds for the orchestration, so that code can change under running
// ones: those that have passed the place before the change say false for ever, all others true. Keep the old branch
// until none of them is left.
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

// continueAsNew is how an orchestrator function asks for its next execution.
type continueAsNew struct {
	input any
}

// Error says what it is, should it ever be seen.
func (continueAsNew) Error() string { return "the orchestration continues as new" }

// ContinueAsNew, returned as the error of an orchestrator, starts the orchestration over with this input, and without
// history: for loops that never end. Calls that nobody has waited for are carried out first.
func ContinueAsNew(input any) error { return continueAsNew{input} }
