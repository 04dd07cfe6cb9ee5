package engine

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/internal/payload"
)

func deep(levels int) []byte {
	return []byte(strings.Repeat("[", levels) + strings.Repeat("]", levels))
}

// The envelope adds a level: an input within the limit in a blob may be too deep in a message, whether a sender packs
// it or an adapter makes it.
func TestPackAndAdaptCountTheEnvelope(t *testing.T) {
	t.Parallel()
	claims, store := newClaims(t)
	adapting := Definition{Adapt: func(body []byte) (Message, bool, error) { return Message{Input: body}, true, nil }}
	for levels, want := range map[int]error{payload.MaxDepth - 1: nil, payload.MaxDepth: payload.ErrTooDeep, 9_998: payload.ErrTooDeep, 20_000: payload.ErrTooDeep} {
		body, err := claims.Pack(t.Context(), Message{Engine: "e", CorrelationID: fmt.Sprint(levels), Input: deep(levels)})
		if !errors.Is(err, want) || (err == nil) != (body != nil) {
			t.Errorf("pack %d levels: %v", levels, err)
		}
		if _, err := adapting.parseMessage([]byte(`{"x":` + string(deep(levels-1)) + `}`)); !errors.Is(err, want) {
			t.Errorf("adapt %d levels: %v", levels, err)
		}
		large := Message{Engine: "e", CorrelationID: fmt.Sprint(levels), Input: append(deep(levels), []byte(strings.Repeat(" ", MaxMessage))...)}
		if _, err := claims.Pack(t.Context(), large); want != nil && !errors.Is(err, want) {
			t.Errorf("pack %d levels into a blob: %v", levels, err)
		}
	}
	if names, _, err := store.List(t.Context(), "engine-messages", "", ""); err != nil || len(names) > 1 {
		t.Errorf("%v are left, %v", names, err)
	}
}

// Input or output that is too deep for an answer is replaced by its size in the history.
func TestHistoryLeavesOutWhatIsTooDeep(t *testing.T) {
	t.Parallel()
	for levels, want := range map[int]string{payload.MaxDepth: string(deep(payload.MaxDepth)), payload.MaxDepth + 1: `{"omittedBytes":1002}`, 9_998: `{"omittedBytes":19996}`} {
		e := Entry{Engine: "e", CorrelationID: "c", CreatedAtUtc: time.Unix(1, 0), Input: deep(levels)}
		e.prepare()
		if got := entryOf(e.entity()); string(got.Input) != want {
			t.Errorf("%d levels: %.60s", levels, got.Input)
		}
	}
}
