package outbox

import (
	"context"
	"errors"
	"sort"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/vibedata/roundhouse/tables"
)

const (
	// lookAheadAfter is how long a drain waits for its lanes before it searches for messages to other destinations behind
	// those that it cannot claim now; it doubles each time.
	lookAheadAfter = 250 * time.Millisecond
	// scanPages and scanLimit bound how far a drain reads to find a claimable message.
	scanPages = 10
	scanLimit = 1000
	// maxLost is the number of consecutive lost claims after which a drain leaves the tenant to other dispatchers.
	maxLost = 20
	// lostFactor widens the choice after a lost claim, so that dispatchers of one tenant pick different messages.
	lostFactor = 4
)

// drain is one pass over the due messages of a tenant. Each destination has a lane: a batch that is claimed, delivered
// and settled independently, so that no destination waits for another.
type drain struct {
	d      *Dispatcher
	tenant string
	// lanes are the destinations that are busy with a batch or wait in line for one.
	lanes map[string]lane
	// reserved means that a lane has waited for depth and holds it.
	reserved map[string]bool
	events   chan laneEvent
	// from is the start of scans: at the outdated dead letters or, when these cannot be updated now, after them.
	from   string
	result Result
	errs   []error
	lost   int
	wait   time.Duration
	// letGo ends the hold of the node that started with the first claim; nil before.
	letGo func()
}

type lane int

const (
	laneWaits lane = iota + 1
	laneBusy
)

// laneEvent is the end of a lane's wait or of its batch.
type laneEvent struct {
	destination string
	was         lane
	// more may be due now
	again  bool
	result Result
	err    error
}

func (d *Dispatcher) newDrain(tenant string) *drain {
	return &drain{d: d, tenant: tenant, lanes: map[string]lane{}, reserved: map[string]bool{}, events: make(chan laneEvent), from: owedPrefix}
}

// run delivers until no message is due, ctx ends, or storage fails.
func (r *drain) run(ctx context.Context) (Result, error) {
	defer r.releaseReserved()
	defer r.releaseNode()
	r.wait = lookAheadAfter
	more := true
	for {
		if more && r.mayStart(ctx) {
			var err error
			if more, err = r.scan(ctx); err != nil {
				r.errs = append(r.errs, err)
			}
		}
		if len(r.lanes) == 0 && (!more || !r.mayStart(ctx)) {
			return r.result, errors.Join(r.errs...)
		}
		if len(r.lanes) > 0 {
			more = r.awaitLane(ctx) || more
		}
	}
}

// mayStart reports whether new work may start.
func (r *drain) mayStart(ctx context.Context) bool {
	return ctx.Err() == nil && len(r.errs) == 0 && r.lost < maxLost
}

// awaitLane waits for a lane, and looks ahead when that takes long. It reports whether more may be due.
func (r *drain) awaitLane(ctx context.Context) bool {
	timer := time.NewTimer(r.wait)
	defer timer.Stop()
	select {
	case e := <-r.events:
		delete(r.lanes, e.destination)
		r.reserved[e.destination] = e.was == laneWaits && e.err == nil
		r.result.add(e.result)
		if e.err != nil && e.was == laneBusy {
			r.errs = append(r.errs, e.err)
		}
		r.wait = lookAheadAfter
		return e.again
	case <-timer.C:
		r.wait *= 2
		if !r.mayStart(ctx) {
			return false
		}
		more, err := r.scan(ctx)
		if err != nil {
			r.errs = append(r.errs, err)
		}
		return more
	}
}

// releaseReserved releases depth that was reserved and not used.
func (r *drain) releaseReserved() {
	for name, held := range r.reserved {
		if held {
			r.d.destination(name).depth.Release(r.batch())
		}
	}
}

func (r *drain) batch() int64 { return int64(r.d.o.options.BatchSize) }

// scan reads due rows and starts lanes for them. It reads until it finds work to start. more means to scan again,
// immediately or when a lane has ended.
func (r *drain) scan(ctx context.Context) (more bool, err error) {
	q := tables.Query{
		Partition: partition(r.tenant),
		From:      r.from,
		To:        pendingPrefix + digits(r.d.o.now().Add(time.Microsecond)),
		Limit:     int(r.batch()),
	}
	if r.lost > 0 {
		q.Limit = min(lostFactor*q.Limit, scanLimit)
	}
	var again, behind bool
	for range scanPages {
		page, err := r.d.o.tables.Query(ctx, r.d.o.table, q)
		if err != nil {
			return false, err
		}
		owed, due := splitOwed(page.Entities)
		r.payOwed(ctx, owed)
		found, left := r.group(ctx, due)
		s, err := r.start(ctx, found)
		again = again || s.again
		behind = behind || left || page.Next != ""
		if err != nil || s.started {
			return again || behind, err
		}
		if page.Next == "" {
			break
		}
		q.Continuation, q.Limit = page.Next, scanLimit
	}
	// The rest waits for the busy lanes; without any, this program cannot deliver it.
	return again || behind && len(r.lanes) > 0, nil
}

// splitOwed divides rows into the o- rows, which come first, and the p- rows.
func splitOwed(rows []tables.Entity) (owed, due []tables.Entity) {
	n := sort.Search(len(rows), func(i int) bool { return rows[i].Row >= pendingPrefix })
	return rows[:n], rows[n:]
}

// payOwed updates the dead letters that a dead process has announced as outdated.
func (r *drain) payOwed(ctx context.Context, rows []tables.Entity) {
	if len(rows) == 0 {
		return
	}
	var group errgroup.Group
	group.SetLimit(payAtOnce)
	for _, row := range rows {
		group.Go(func() error { return r.d.o.payRow(ctx, r.tenant, row) })
	}
	if group.Wait() != nil {
		r.from = pendingPrefix
	}
}

// group groups rows by destination, at most one batch each. left means that some cannot be claimed now.
func (r *drain) group(ctx context.Context, rows []tables.Entity) (found map[string][]dueRow, left bool) {
	found = map[string][]dueRow{}
	if int64(len(rows)) > r.batch() && r.lost > 0 {
		// A random start makes dispatchers with the same rows pick different ones.
		skip := int(r.d.o.random() * float64(int64(len(rows))-r.batch()+1))
		rows, left = rows[skip:], true
	}
	for _, e := range rows {
		m, err := decode(e)
		if err != nil {
			// A damaged row or a row of a newer program cannot be delivered, and must not block the others.
			r.d.o.logger.ErrorContext(ctx, "outbox message left alone", "error", err)
			continue
		}
		name, _, err := r.d.router.Find(r.tenant, m.EventType)
		if err != nil {
			name = "" // events without a route have their own lane, where their delivery fails with the reason
		}
		if r.lanes[name] != 0 || int64(len(found[name])) >= r.batch() {
			left = true
			continue
		}
		if found[name] == nil {
			// A row is large to copy, and most of a page goes to one destination.
			found[name] = make([]dueRow, 0, min(len(rows), int(r.batch())))
		}
		found[name] = append(found[name], dueRow{e, m})
	}
	return found, left
}

// startResult is the result of start. started means that a lane has work or waits for depth; again means that another
// scan is needed.
type startResult struct{ started, again bool }

// start claims messages and starts their lanes.
func (r *drain) start(ctx context.Context, found map[string][]dueRow) (out startResult, err error) {
	for name, rows := range found {
		to := r.d.destination(name)
		if !r.reserveDepth(ctx, to) {
			out = startResult{started: true, again: true}
			continue
		}
		batch, again, err := r.claimBatch(ctx, to, rows)
		out.again = out.again || again
		if len(batch) == 0 {
			to.depth.Release(r.batch())
		} else {
			out.started = true
			r.result.Claimed += len(batch)
			r.d.o.observe.Claimed(len(batch))
			r.d.o.logFetch(ctx, r.tenant, name, len(batch))
			r.lanes[name] = laneBusy
			go r.deliverBatch(ctx, to, batch)
		}
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

// claimBatch claims as many rows as the destination's circuit admits, and postpones the others. again means that
// another scan is needed, because some were not claimed.
func (r *drain) claimBatch(ctx context.Context, to *destination, rows []dueRow) (batch []*claimedMessage, again bool, err error) {
	n, until := to.circuit.admit(r.d.o.now(), len(rows))
	if n > 0 {
		r.hold()
		batch, err = r.d.claim(ctx, rows[:n])
		r.lost++
		if len(batch) > 0 {
			r.lost = 0
		}
	}
	if n < len(rows) && err == nil {
		err = r.d.postpone(ctx, rows[n:], until)
		r.result.PutOff += len(rows) - n
	}
	return batch, len(batch) < len(rows), err
}

// hold makes the node report work in flight, until the drain ends.
func (r *drain) hold() {
	if r.letGo == nil {
		r.letGo = r.d.o.nodes.Hold("")
	}
}

// releaseNode ends the hold.
func (r *drain) releaseNode() {
	if r.letGo != nil {
		r.letGo()
	}
}

// reserveDepth reserves depth of a destination for a batch. Without free depth, the lane waits in line for it.
func (r *drain) reserveDepth(ctx context.Context, to *destination) bool {
	if r.reserved[to.name] {
		r.reserved[to.name] = false
		return true
	}
	if to.depth.TryAcquire(r.batch()) {
		return true
	}
	r.lanes[to.name] = laneWaits
	go func() {
		err := to.depth.Acquire(ctx, r.batch())
		r.events <- laneEvent{destination: to.name, was: laneWaits, again: true, err: err}
	}()
	return false
}

// deliverBatch delivers and settles a batch.
func (r *drain) deliverBatch(ctx context.Context, to *destination, batch []*claimedMessage) {
	result, promoted, err := r.d.deliverAll(ctx, to, batch)
	to.depth.Release(r.batch())
	r.events <- laneEvent{destination: to.name, was: laneBusy, again: promoted, result: result, err: err}
}
