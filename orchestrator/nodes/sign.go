package nodes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

const (
	// linger is how long a node without work keeps its sign of life: new work often follows soon.
	linger = time.Minute
	// rowEvery is how often a node with work writes its row: not twice in a minute.
	rowEvery = time.Minute + time.Second
	// retryPause is the approximate pause after a failed renewal.
	retryPause = 500 * time.Millisecond
	// slowRenewal is the duration of a renewal from which on storage counts as slow.
	slowRenewal = time.Second
	// renewTimeout bounds one renewal.
	renewTimeout = 10 * time.Second
)

// sign is this node's sign of life.
type sign struct {
	id, receipt string // of the message; "" without one
	number      int    // distinguishes the signs of a node
	doubtful    bool   // a message with this number may exist whose receipt is unknown
	named       int    // how much released work it names
}

// body is the message. It has the form of a signal to an orchestration that does not exist, which earlier versions of
// this program drop.
type body struct {
	SignalID   string `json:"signalId"`
	InstanceID string `json:"workflowInstanceId"`
	Provider   string `json:"runtimeProvider"`
	Type       string `json:"signalType"`
	Node       *note  `json:"node"`
}

// note is the content of the message.
type note struct {
	Name   string `json:"name"`
	Number int    `json:"number"`
	// Gone is set when the node has left.
	Gone bool `json:"gone,omitempty"`
	Hand Hand `json:"hand"`
}

func (s note) encode() ([]byte, error) {
	return json.Marshal(body{SignalID: fmt.Sprintf("node:%s:%d", s.Name, s.Number), InstanceID: "node:" + s.Name, Provider: "roundhouse", Type: "InternalContinue", Node: &s})
}

// decode returns the note of a message, and whether the message is a sign of life.
func decode(text []byte) (note, bool) {
	var b body
	if json.Unmarshal(text, &b) != nil || b.Node == nil || b.Node.Name == "" {
		return note{}, false
	}
	return *b.Node, true
}

// beat renews the sign of life until the node has been without work for a while, and then deletes it.
func (n *Node) beat() {
	for {
		ctx, cancel := context.WithTimeout(n.work, renewTimeout)
		began := time.Now()
		err := n.renew(ctx)
		cancel()
		wait := max(n.config.Interval-elapsed(began), n.config.Interval/4)
		if err != nil && n.work.Err() == nil {
			n.config.Log.Warn("the sign of life of this node cannot be renewed", "node", n.Name(), "error", err.Error())
			wait = retryPause/2 + rand.N(retryPause)
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-n.ending:
			timer.Stop()
			return
		}
		if n.rest() {
			return
		}
	}
}

// rest deletes the sign of life of a node that has been without work for a while, and reports whether it did.
func (n *Node) rest() bool {
	n.signing <- struct{}{}
	defer func() { <-n.signing }()
	n.mu.Lock()
	// A row that was written since records that the node has no work: without it, Sweep would consider this node dead.
	idle := len(n.held)+len(n.givenUp) == 0 && elapsed(n.idle) >= linger && elapsed(n.written) < elapsed(n.idle)
	if idle {
		n.renewed = time.Time{} // a later commit makes a new one first
	}
	n.mu.Unlock()
	if !idle || n.deleteSign(n.work) != nil {
		return false // a sign that could not be deleted is renewed, and deleted later
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.beating = len(n.held)+len(n.givenUp) > 0
	return !n.beating
}

// deleteSign deletes the message. The caller holds signing.
func (n *Node) deleteSign(ctx context.Context) error {
	if n.sign.id == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	err := n.config.Queues.Delete(ctx, n.config.Queue, n.sign.id, n.sign.receipt)
	if isLost(err) {
		return n.dropSign(ctx)
	}
	if err == nil {
		n.sign.id, n.sign.number = "", n.sign.number+1 // the outcome of the old sign says nothing about the next
	}
	return err
}

// isLost reports whether another process has the message.
func isLost(err error) bool {
	return errors.Is(err, queues.ErrPopReceipt) || errors.Is(err, queues.ErrNotFound)
}

// renew keeps the sign of life hidden, unless it was renewed just now, and makes it if necessary.
func (n *Node) renew(ctx context.Context) error {
	select {
	case n.signing <- struct{}{}:
		defer func() { <-n.signing }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	n.mu.Lock()
	done := n.left || !n.renewed.IsZero() && elapsed(n.renewed) < n.config.Interval/2
	n.mu.Unlock()
	if done {
		return nil
	}
	began := time.Now()
	hidden, err := n.show(ctx)
	n.mu.Lock()
	if n.unseen = err != nil; err == nil {
		n.renewed, n.hidden, n.took = began, hidden, elapsed(began)
	}
	if named := n.sign.named; err == nil && named > 0 { // the node and its host are alive, so the host shows the failed messages
		n.givenUp, n.idle = slices.Delete(n.givenUp, 0, named), time.Now()
	}
	n.mu.Unlock()
	if err != nil {
		return fmt.Errorf("renew the sign of life: %w", err)
	}
	n.mu.Lock()
	due := n.news || elapsed(n.written) >= rowEvery
	n.mu.Unlock()
	if due {
		n.writeRowLater()
	}
	return nil
}

// show updates the message, or sends it. If a message was sent with unknown outcome, show ends that sign and sends
// another one. The caller holds signing.
func (n *Node) show(ctx context.Context) (hidden time.Duration, err error) {
	hidden = n.hideFor()
	err = n.tryShow(ctx, hidden)
	if err != nil && n.sign.doubtful && ctx.Err() == nil {
		err = n.tryShow(ctx, hidden)
	}
	return hidden, err
}

// hideFor returns the duration for which the next renewal hides the sign of life. On slow storage it is longer, so
// that a living node is not fenced.
func (n *Node) hideFor() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.took < slowRenewal {
		return n.config.Death
	}
	return min(n.config.Death+4*n.took, 4*n.config.Death)
}

func (n *Node) tryShow(ctx context.Context, hidden time.Duration) error {
	if n.sign.doubtful {
		if err := n.dropSign(ctx); err != nil {
			return err
		}
	}
	if n.sign.id != "" {
		text, err := n.message()
		if err != nil {
			return err
		}
		receipt, err := n.config.Queues.Update(ctx, n.config.Queue, n.sign.id, n.sign.receipt, text, hidden)
		if err == nil {
			n.sign.receipt = receipt
		}
		if !isLost(err) {
			return err
		}
		if err := n.dropSign(ctx); err != nil {
			return err
		}
	}
	text, err := n.message()
	if err != nil {
		return err
	}
	sent, err := n.config.Queues.SendHidden(ctx, n.config.Queue, text, hidden)
	n.sign.id, n.sign.receipt, n.sign.doubtful = sent.ID, sent.PopReceipt, err != nil && !errors.Is(err, queues.ErrThrottled)
	return err
}

// message returns the text of the message, and updates which released work it names. The caller holds signing.
func (n *Node) message() ([]byte, error) {
	n.mu.Lock()
	n.sign.named = len(n.givenUp)
	n.mu.Unlock()
	return n.note().encode()
}

// note returns the current content of the message. The caller holds signing.
func (n *Node) note() note {
	n.mu.Lock()
	defer n.mu.Unlock()
	return note{Name: n.name, Number: n.sign.number, Hand: handOf(n.inHand(), n.config.Now().UTC())}
}

// dropSign ends a sign of life that the node no longer holds, so that no node takes over when it is received. If
// another node has taken over already, this node is fenced. The caller holds signing.
func (n *Node) dropSign(ctx context.Context) error {
	name := n.Name()
	by, err := n.endSign(ctx, ended{Node: name, Number: n.sign.number, State: stateDropped, At: n.config.Now().UTC()})
	if err != nil {
		return err
	}
	if by.State == stateDropped {
		n.sign = sign{number: n.sign.number + 1}
		n.outdateRow()
		return nil
	}
	n.mu.Lock()
	n.name = newName(n.config.Name)
	n.started, n.renewed, n.givenUp = n.config.Now().UTC(), time.Time{}, nil
	n.counts.Fenced++
	now := n.name
	n.mu.Unlock()
	n.sign = sign{}
	n.outdateRow()
	n.config.Log.ErrorContext(ctx, "this node was taken for dead, and another one goes on with what it had in hand: it goes on with new work under another name. "+
		"Look at what kept it from its storage: a frozen machine or container, a lack of CPU, the network", "node", now, "formerNode", name, "by", by.By)
	return nil
}

// endSign inserts the row that ends a sign of life, and returns the row that exists then.
func (n *Node) endSign(ctx context.Context, e ended) (ended, error) {
	var err error
	for range endTries {
		err = n.config.Tables.Apply(ctx, n.config.Table, tables.Insert(e.entity()))
		if err == nil {
			return e, nil
		}
		row, readErr := n.config.Tables.Get(ctx, n.config.Table, e.key())
		if readErr == nil {
			return endedOf(row), nil
		}
		if !errors.Is(readErr, tables.ErrNotFound) {
			return e, fmt.Errorf("end sign of life %d of node %s: %w", e.Number, e.Node, errors.Join(err, readErr))
		}
	}
	return e, fmt.Errorf("end sign of life %d of node %s: %w", e.Number, e.Node, err)
}

// endTries bounds how often the end of a sign of life is inserted.
const endTries = 3
