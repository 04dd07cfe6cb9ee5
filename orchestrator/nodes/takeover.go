package nodes

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/vibedata/roundhouse/tables"
)

const (
	// grace is the time that a node gets after its sign of life was shown: after an outage of storage, all nodes are
	// late. On slow storage it is longer.
	grace = time.Second
	// refreshEvery is how often a takeover in progress is confirmed in its row.
	refreshEvery = time.Minute
	// unseen is how long a node with work may go without writing its row before Sweep considers it dead, and how long
	// a takeover may be unfinished. Clocks may differ by a minute.
	unseen = 5 * time.Minute
	// rowKeep is how long rows are kept.
	rowKeep = 24 * time.Hour
	// sweepSlice bounds the nodes that one Sweep takes over from, and the rows that it deletes.
	sweepSlice = 100
)

// Lost is a node that has died, or has left.
type Lost struct {
	// Node is its name, By the name of the node that takes over.
	Node, By string
	// Hand is its work when it was last seen; it may have more since.
	Hand Hand
	// HostLives is set if only the process is gone: the host redelivers its messages by itself.
	HostLives bool
	// Begun is zero for the first takeover of the node. For a takeover that another process had begun and not
	// finished, it is when that one began, by its clock.
	Begun time.Time
}

// Receive handles a message of the queue. handled is false for a message that is no sign of life. After an error, the
// message must be redelivered.
func (n *Node) Receive(ctx context.Context, message []byte) (handled bool, err error) {
	s, ok := decode(message)
	if !ok {
		return false, nil
	}
	own, err := n.receiveOwn(ctx, s)
	if own || err != nil {
		return true, err
	}
	wait := time.Duration(0)
	if !s.Gone {
		wait = grace
	}
	return true, n.takeOver(ctx, ended{Node: s.Name, Number: s.Number, Hand: s.Hand}, false, wait)
}

// receiveOwn makes a new sign of life when this node receives its own: it is alive, though late.
func (n *Node) receiveOwn(ctx context.Context, s note) (own bool, err error) {
	select {
	case n.signing <- struct{}{}:
		defer func() { <-n.signing }()
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	switch {
	case n.Name() != s.Name || n.isLeft():
		return false, nil
	case n.sign.number != s.Number:
		return true, nil // a sign that was sent with unknown outcome, and then replaced
	}
	if err := n.dropSign(ctx); err != nil {
		return true, err
	}
	began := time.Now()
	hidden, err := n.show(ctx)
	if err != nil {
		return true, err
	}
	n.mu.Lock()
	n.renewed, n.hidden = began, hidden
	n.mu.Unlock()
	return true, nil
}

func (n *Node) isLeft() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.left
}

// takeOver takes over from a node whose sign of life has ended, and finishes the takeovers of that node. It gives the
// node some time to react.
func (n *Node) takeOver(ctx context.Context, e ended, hostLives bool, wait time.Duration) error {
	release := n.hold(held{}) // so that others finish it if this node dies, too
	defer release()
	by := n.Name()
	if err := n.Confirm(ctx, by); err != nil {
		return err
	}
	if wait > 0 {
		if err := pause(ctx, wait+n.slowness()); err != nil {
			return err
		}
	}
	mine, err := n.claim(ctx, &e, by)
	if err != nil || !mine {
		return err
	}
	n.config.Log.WarnContext(ctx, "a node is gone: this one goes on with what it had in hand", "node", e.Node, "by", by, "seen", e.Hand.At, "inHand", e.Hand.Count)
	return atOnce([]func() error{
		func() error { return n.carryOut(ctx, e, by, hostLives) },
		func() error { return n.finishOthers(ctx, e.Node) },
	})
}

// slowness returns how much later than usual a living node may be, judged by this node's own renewals.
func (n *Node) slowness() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.unseen:
		return n.config.Interval
	case n.took < slowRenewal:
		return 0
	}
	return min(4*n.took, n.config.Interval)
}

// atOnce runs all takeovers at the same time: a takeover lasts as long as the work it drives, and none may wait for
// another.
func atOnce(takeovers []func() error) error {
	errs := make([]error, len(takeovers))
	var going sync.WaitGroup
	for i, one := range takeovers {
		going.Go(func() { errs[i] = one() })
	}
	going.Wait()
	return errors.Join(errs...)
}

// carryOut continues the work of a node, and records when all of it is running.
func (n *Node) carryOut(ctx context.Context, e ended, by string, hostLives bool) error {
	messages := 0
	if !hostLives {
		messages = n.showMessages(ctx, e.Hand.Messages)
	}
	lost := Lost{Node: e.Node, By: by, Hand: e.Hand, HostLives: hostLives}
	if e.repeated {
		lost.Begun = e.Begun
	}
	refreshing, stop := context.WithCancel(ctx)
	var refreshes sync.WaitGroup
	refreshes.Go(func() { n.refresh(refreshing, e) })
	end := sync.OnceFunc(func() {
		stop()
		refreshes.Wait()
	})
	defer end()
	err := n.config.TakeOver(ctx, lost, func(orchestrations int) {
		end()
		n.mu.Lock()
		n.counts.Takeovers++
		n.counts.TakenOver += orchestrations
		n.mu.Unlock()
		if err := n.record(ctx, e, func(found *ended) { found.Finished, found.Taken = true, orchestrations }); err != nil {
			n.config.Log.WarnContext(ctx, "it cannot be noted that a takeover is finished: it may be repeated", "node", e.Node, "error", err.Error())
		}
		n.config.Log.InfoContext(ctx, "what a node had in hand goes on", "node", e.Node, "by", by, "orchestrations", orchestrations, "messages", messages)
	})
	if err == nil {
		return nil
	}
	end()
	release := func(found *ended) { found.At = n.config.Now().UTC().Add(-unseen) }
	if noteErr := n.record(context.WithoutCancel(ctx), e, release); noteErr != nil {
		err = errors.Join(err, noteErr)
	}
	return fmt.Errorf("take over from node %s: %w", e.Node, err)
}

// refresh confirms in the row of a takeover that this node works on it, until ctx ends. Other nodes leave the takeover
// to it.
func (n *Node) refresh(ctx context.Context, e ended) {
	for pause(ctx, refreshEvery) == nil {
		if err := n.record(ctx, e, func(found *ended) { found.At = n.config.Now().UTC() }); err != nil && ctx.Err() == nil {
			n.config.Log.WarnContext(ctx, "a takeover in progress cannot be confirmed: another node may repeat it", "node", e.Node, "error", err.Error())
		}
	}
}

// record changes the row of a takeover, unless another node has taken the takeover over or it is finished.
func (n *Node) record(ctx context.Context, e ended, change func(*ended)) error {
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	row, err := n.config.Tables.Get(ctx, n.config.Table, e.key())
	if err != nil {
		return err
	}
	found := endedOf(row)
	if found.By != e.By || found.Finished {
		return nil
	}
	change(&found)
	return n.config.Tables.Apply(ctx, n.config.Table, tables.Replace(found.entity()))
}

// showMessages makes the messages visible that a dead host keeps hidden, and returns their number. Messages that
// another process has by now, and those that cannot be shown, become visible when their time is over.
func (n *Node) showMessages(ctx context.Context, messages []Message) (shown int) {
	for _, m := range messages {
		if _, err := n.config.Queues.Renew(ctx, m.Queue, m.ID, m.PopReceipt, 0); err == nil {
			shown++
		} else if !isLost(err) {
			n.config.Log.WarnContext(ctx, "a message that a dead host had received cannot be shown", "queue", m.Queue, "messageId", m.ID, "error", err.Error())
		}
	}
	return shown
}

// claim makes this node the one that takes over. mine is false if no takeover is needed: the node has continued with
// another sign of life, or another node has taken over.
func (n *Node) claim(ctx context.Context, e *ended, by string) (mine bool, err error) {
	if taken, err := n.isTakenOtherwise(ctx, *e); taken || err != nil {
		return false, err
	}
	e.State, e.By, e.At = StateTaken, by, n.config.Now().UTC()
	e.Begun = e.At
	found, err := n.endSign(ctx, *e)
	switch {
	case err != nil:
		return false, err
	case found.State != StateTaken || found.Finished:
		return false, nil
	case found.By == by:
		*e, e.repeated = found, true
		return true, nil
	case n.config.Now().Sub(found.At) < unseen:
		return false, nil // its node works on it, or Sweep finishes it
	}
	return n.reclaim(ctx, e, found, by)
}

// isTakenOtherwise reports whether another node has taken over by another sign of life of the same node. The process
// that follows under the same host knows the number in the row, and the node may have continued with another sign
// since.
func (n *Node) isTakenOtherwise(ctx context.Context, e ended) (bool, error) {
	prefix := tables.EscapeKey(signPrefix + e.Node + "-")
	q := tables.Query{Partition: partition, From: prefix, To: tables.PrefixEnd(prefix)}
	for row, err := range tables.All(ctx, n.config.Tables, n.config.Table, q) {
		if err != nil {
			return false, fmt.Errorf("read what ended the signs of life of node %s: %w", e.Node, err)
		}
		if found := endedOf(row); found.State == StateTaken && found.Number != e.Number {
			return true, nil
		}
	}
	return false, nil
}

// reclaim takes an unfinished takeover from another node.
func (n *Node) reclaim(ctx context.Context, e *ended, found ended, by string) (bool, error) {
	found.By, found.At = by, n.config.Now().UTC()
	err := n.config.Tables.Apply(ctx, n.config.Table, tables.Replace(found.entity()))
	*e, e.repeated = found, true
	if errors.Is(err, tables.ErrPrecondition) || errors.Is(err, tables.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("take over from node %s: %w", e.Node, err)
	}
	return true, nil
}

// finishOthers finishes the takeovers that a node had begun.
func (n *Node) finishOthers(ctx context.Context, lost string) error {
	_, signs, err := rows(ctx, n.config.Tables, n.config.Table)
	if err != nil {
		return err
	}
	var others []func() error
	for _, e := range signs {
		if e.State == StateTaken && !e.Finished && e.By == lost {
			others = append(others, func() error { return n.finish(ctx, e) })
		}
	}
	return atOnce(others)
}

// finish continues a takeover that another node had begun.
func (n *Node) finish(ctx context.Context, e ended) error {
	by := n.Name()
	var mine ended
	if ok, err := n.reclaim(ctx, &mine, e, by); err != nil || !ok {
		return err
	}
	return atOnce([]func() error{
		func() error { return n.carryOut(ctx, mine, by, false) },
		func() error { return n.finishOthers(ctx, e.Node) },
	})
}

// Start writes the row of this node, and takes over from processes that the same host had started and that are gone.
// The takeovers continue after it returns, until Close.
func (n *Node) Start(ctx context.Context) error {
	var all []Info
	steps := []func() error{func() error { return n.announce(ctx) }}
	if n.config.Host != "" {
		steps = append(steps, func() (err error) {
			all, _, err = rows(ctx, n.config.Tables, n.config.Table)
			return err
		})
	}
	if err := atOnce(steps); err != nil {
		return err
	}
	for _, info := range all {
		dead := info.State == StateAlive && !n.config.Alive(info.PID) || info.State == StateGone && info.Hand.Count > 0
		if dead && info.Host == n.config.Host && info.PID != n.config.PID {
			n.inBackground(ended{Node: info.Name, Number: info.number, Hand: info.Hand})
		}
	}
	return nil
}

// announce writes the row of this node.
func (n *Node) announce(ctx context.Context) error {
	n.signing <- struct{}{}
	defer func() { <-n.signing }()
	return n.writeRow(ctx, StateAlive)
}

// inBackground takes over from a process of the same host.
func (n *Node) inBackground(e ended) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.left {
		return
	}
	n.beats.Go(func() {
		if err := n.takeOver(n.work, e, true, 0); err != nil && n.work.Err() == nil {
			n.config.Log.Warn("the takeover from the process before failed: another node does it when its sign of life is shown", "node", e.Node, "error", err.Error())
		}
	})
}

// Leave ends a node at shutdown: others take over immediately the work that it could not return. It commits nothing
// afterwards.
func (n *Node) Leave(ctx context.Context) error {
	n.end()
	select {
	case n.signing <- struct{}{}:
		defer func() { <-n.signing }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	s := n.note()
	s.Gone = true
	var err error
	if s.Hand.Count == 0 {
		err = n.deleteSign(ctx)
	} else {
		err = n.showGone(ctx, s)
	}
	return errors.Join(err, n.writeRow(ctx, StateGone))
}

// showGone shows the sign of life, so that another node takes over. The caller holds signing.
func (n *Node) showGone(ctx context.Context, s note) error {
	text, err := s.encode()
	if err != nil {
		return err
	}
	if n.sign.id != "" {
		_, err := n.config.Queues.Update(ctx, n.config.Queue, n.sign.id, n.sign.receipt, text, 0)
		if !isLost(err) {
			return err
		}
	}
	_, err = n.config.Queues.Send(ctx, n.config.Queue, text, 0)
	return err
}

// Sweep takes over from nodes with a lost message, finishes abandoned takeovers, and deletes old rows. One node
// calling it every few minutes is enough; several do no harm.
func (n *Node) Sweep(ctx context.Context) error {
	nodes, signs, err := rows(ctx, n.config.Tables, n.config.Table)
	if err != nil {
		return err
	}
	now := n.config.Now()
	var takeovers []func() error
	var old []tables.Key
	for _, info := range nodes {
		switch {
		case info.State != StateTaken && info.Hand.Count > 0 && info.Name != n.Name() && now.Sub(info.Seen) > unseen && len(takeovers) < sweepSlice:
			takeovers = append(takeovers, func() error {
				return n.takeOver(ctx, ended{Node: info.Name, Number: info.number, Hand: info.Hand}, false, 0)
			})
		case now.Sub(info.Seen) > rowKeep && info.Name != n.Name():
			old = append(old, tables.Key{Partition: partition, Row: tables.EscapeKey(nodePrefix + info.Name)})
		}
	}
	for _, e := range signs {
		switch {
		case e.State == StateTaken && !e.Finished && now.Sub(e.At) >= unseen && len(takeovers) < sweepSlice:
			takeovers = append(takeovers, func() error { return n.finish(ctx, e) })
		case now.Sub(e.At) > rowKeep:
			old = append(old, e.key())
		}
	}
	errs := []error{atOnce(takeovers)}
	for _, key := range old[:min(len(old), sweepSlice)] {
		if err := n.config.Tables.Apply(ctx, n.config.Table, tables.Delete(key, "")); err != nil && !errors.Is(err, tables.ErrNotFound) {
			errs = append(errs, fmt.Errorf("delete the old row %s: %w", key, err))
		}
	}
	return errors.Join(errs...)
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
