package engine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/payload"
	"github.com/vibedata/roundhouse/orchestrator"
)

// deepMessage returns a message of so many levels, in a member that no engine reads.
func deepMessage(levels int) string {
	return fmt.Sprintf(`{"correlationId":"c%d","instanceId":"i1","input":{"degrees":90},"more":%s%s}`, levels, strings.Repeat("[", levels-1), strings.Repeat("]", levels-1))
}

// A message that is too deep to store is a dead letter with its bytes and the limit; its neighbors run.
func TestDeepMessages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for _, levels := range []int{payload.MaxDepth, payload.MaxDepth + 1, 9_998, 10_001} {
			w.Send(testQueue, deepMessage(levels))
		}
		w.Restart(nil).Run()
		entries := w.History("turntable", "c500")
		if len(entries) != 2 || entries[1].RunStatus != engine.StatusSucceeded {
			t.Errorf("%d entries", len(entries))
		}
		dead := w.DeadLetters("turntable")
		if len(dead) != 3 {
			t.Fatalf("%d dead letters", len(dead))
		}
		found := map[string]bool{}
		for _, l := range dead {
			found[string(l.OriginalMessage)] = true
			if l.DetectedReason != engine.ReasonUndecodable || l.DequeueCount != 1 || !strings.Contains(l.ErrorMessage, "500 levels") {
				t.Errorf("%s after %d deliveries: %s", l.DetectedReason, l.DequeueCount, l.ErrorMessage)
			}
		}
		for _, levels := range []int{payload.MaxDepth + 1, 9_998, 10_001} {
			if !found[deepMessage(levels)] {
				t.Errorf("the message of %d levels is lost", levels)
			}
		}
	})
}

// A start of an engine checks the depth of its message.
func TestDeepStartsAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.Restart(nil)
	for levels, want := range map[int]error{payload.MaxDepth: nil, payload.MaxDepth + 1: engine.ErrRefused, 9_998: engine.ErrRefused} {
		value := strings.Repeat("[", levels-1) + strings.Repeat("]", levels-1)
		s, err := p.Admit(t.Context(), orchestrator.Start{Orchestrator: "turntable", Input: []byte(`{"input":` + value + `}`)})
		if !errors.Is(err, want) || want != nil && (!errors.Is(err, payload.ErrTooDeep) || !strings.Contains(err.Error(), "500 levels")) {
			t.Errorf("%d levels: %v", levels, err)
		}
		if err == nil && payload.Check(s.Input) != nil {
			t.Errorf("%d levels: what is admitted cannot be stored", levels)
		}
	}
}
