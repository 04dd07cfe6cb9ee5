package handler

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/outbox"
)

// sayer is a node that keeps what it is given to say.
type sayer struct {
	namedNode
	mu   sync.Mutex
	said []string
}

func (s *sayer) Say(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = append(s.said, text)
}

// The process says among the others which destinations it sends nothing to.
func TestCircuitsAreSaid(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	r.status.Store(http.StatusServiceUnavailable)
	node := &sayer{namedNode: "node-1"}
	st := memoryPlatform(t, &faults.Plan{})
	testenv.Done(t)(st.Secrets.Add(t.Context(), "hook", []byte(strings.Repeat("s", outbox.MinSecret)), nil))
	e, _ := newEventsOn(t, st, node, r.document(`,"signingKeys":[{"id":"k1","secret":"hook"}]`))
	for i := range outbox.DefaultOptions().CircuitFailures {
		add(t, e, fmt.Sprintf(`{"n":%d}`, i))
	}
	testenv.Done(t)(e.dispatcher.Sweep(t.Context()))
	node.mu.Lock()
	defer node.mu.Unlock()
	if len(node.said) != 1 {
		t.Fatalf("said %q", node.said)
	}
	open, err := outbox.DecodeCircuits(node.said[0])
	if err != nil || len(open) != 1 || open[0].Destination != "r" || open[0].Reason != "status 503" || !open[0].Until.After(open[0].Since) {
		t.Errorf("said %q: %v", node.said, err)
	}
}
