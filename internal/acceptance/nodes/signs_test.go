package nodes

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/orchestrator/nodes"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

// taking is a row that records a takeover.
type taking struct {
	node, by string // names
	number   int64
	at       time.Time
	finished bool
}

func (t taking) String() string {
	return fmt.Sprintf("%s/%d by %s at %s, finished %v", t.node, t.number, t.by, clock(t.at), t.finished)
}

// signed checks the rows of nodes: a node declared dead has not renewed its sign of life, and only one node at a time
// takes it over.
func (s *storage) signed(from origin, ops []tables.Op) {
	for _, op := range ops {
		e := op.Entity
		if !strings.HasPrefix(e.Row, "sign-") || op.Kind == tables.OpDelete || e.String("State") != string(nodes.StateTaken) {
			continue
		}
		now := taking{e.String("Node"), e.String("TakenBy"), e.Int("Number"), time.Now(), e.Bool("Finished")}
		before, again := s.taken[now.node]
		switch {
		case !again:
			s.checkLost(s.owner(now.node), now)
		case before.number != now.number:
			s.t.Errorf("%s was taken over twice: %s, %s", now.node, before, now)
		case before.finished && (before.by != now.by || !now.finished):
			s.t.Errorf("a takeover is begun again that was finished: %s, %s", before, now)
		case before.by != now.by && s.owner(before.by).wasWell(before.at, now.at):
			s.t.Errorf("%s took over from %s, and was well, but %s took over, too", before.by, now.node, now.by)
		}
		if again {
			now.at = before.at
		}
		if before.by != now.by {
			s.claims[now.node]++
			s.takers = append(s.takers, now.by)
			from.by.tell("%s is taken over by %s", now.node, now.by)
		}
		s.taken[now.node] = now
	}
}

// checkLost checks that a node declared dead had not renewed its sign of life.
func (s *storage) checkLost(lost *machine, now taking) {
	if lost == nil || !lost.alive() || lost.isLeaving() {
		return
	}
	if age := time.Since(lost.member.renewedBefore(now.at)); age < nodes.DefaultDeath {
		s.t.Errorf("%s is taken for dead by %s at %s, %v after it had renewed its sign of life", now.node, now.by, clock(now.at), age)
	}
	if lost.wasWell(now.at.Add(-time.Minute), now.at) {
		s.t.Errorf("%s is taken for dead by %s at %s, although nothing is the matter with it", now.node, now.by, clock(now.at))
	}
}

// owner returns the machine of a node name, past or present.
func (s *storage) owner(node string) *machine {
	name, _, _ := cutLast(node, "-")
	return s.machines[name]
}

// wasWell reports whether the machine had no trouble in a time range.
func (m *machine) wasWell(from, to time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, one := range m.ill {
		if !one.begin.After(to) && (one.end.IsZero() || one.end.After(from)) {
			return false
		}
	}
	return true
}

// renewedBefore returns when storage last renewed the node's sign of life before a time.
func (b *member) renewedBefore(to time.Time) (last time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, at := range b.renewals {
		if !at.After(to) {
			last = at
		}
	}
	return last
}

// receipt is a sign of life that a host received from its queue.
type receipt struct {
	node string
	by   *machine
	at   time.Time
}

// receiving is the innermost queue store of a machine's host: a returned message is hidden even if the host does not
// get the answer.
type receiving struct {
	queues.Store
	by *machine
}

func (r receiving) Receive(ctx context.Context, queue string, limit int, visibility time.Duration) ([]queues.Message, error) {
	messages, err := r.Store.Receive(ctx, queue, limit, visibility)
	for _, m := range messages {
		r.by.storage.handedTo(r.by, m)
		node := signOf(queues.Decode(m.Text))
		if node == "" {
			continue
		}
		s := r.by.storage
		s.mu.Lock()
		s.receipts = append(s.receipts, receipt{node, r.by, time.Now()})
		s.mu.Unlock()
		r.by.tell("%s receives the sign of life of %s", r.by, node)
	}
	return messages, err
}

// signOf returns the node of a sign of life, "" for another message.
func signOf(body []byte) string {
	var sign struct {
		Node struct {
			Name string `json:"name"`
		} `json:"node"`
	}
	if json.Unmarshal(body, &sign) != nil {
		return ""
	}
	return sign.Node.Name
}

// swallowed returns when, in a time range, a host received a sign of life and died before it acted. Then the host's
// lease has to end first, or the sweeper finds the node.
func (s *storage) swallowed(from, to time.Time) (at time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.receipts {
		if !r.at.Before(from) && r.at.Before(to) && !r.by.wasWell(r.at.Add(-time.Second), r.at.Add(3*time.Second)) {
			at, ok = r.at, true
		}
	}
	return at, ok
}
