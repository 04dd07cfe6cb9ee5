package orchestrator

import (
	"container/list"
	"context"
	"time"

	"github.com/vibedata/roundhouse/tables"
)

// position is the state to which a driver has brought its orchestration. The next driver of this process continues
// from it without reading the rounds, if no other process has committed one since.
type position struct {
	orchestrator AnyOrchestrator

	execution      *execution
	rounds         []round // of this execution, committed
	version        int     // number of rounds of all executions
	reportedStatus Status  // status after the last round, "" before the first
	createdAt      time.Time
	writtenAt      time.Time // when the last round was committed, by the clock of the committing process
	latestEventAt  int64     // time of the latest event that was found, in microseconds
	marker         executionMarker
	previousMarker executionMarker // marker of the previous execution
	obsoleteRows   []string        // rows of executions that are no longer needed
	previousRows   []string        // rows that become obsolete when this execution continues as new
	obsoleteBlobs  []int           // executions with obsolete rows that have blobs
	blobs          bool            // this execution has blobs
	earlier        []Outcome
	prior          priorResults
	lookedUp       int             // how many calls of this execution were compared with prior
	matched        []matchedResult // prior results that calls are about to get
	known          int             // how many calls of this execution are committed
	tracer         RunTracer       // receives the rounds; nil for none
}

// cache keeps the positions of the latest orchestrations that have come to rest in this process. It is safe only with
// the lock of its Runtime.
type cache struct {
	most    int // weight that it may hold
	weight  int
	entries map[string]*list.Element // of cached, by orchestration
	latest  list.List                // the latest first
}

// cached is an entry of a cache.
type cached struct {
	id       string
	position position
	weight   int
}

// coroutineWeight is the number of events that take as much memory as a coroutine.
const coroutineWeight = 16

// weight estimates the memory that the position takes, in events.
func (p *position) weight() int {
	n := coroutineWeight * len(p.execution.coroutines)
	for _, r := range p.rounds {
		n += len(r.Learned) + len(r.Decided)
	}
	return n
}

// put adds a position, and returns the evicted ones. The new one may be among them.
func (c *cache) put(id string, p position) (evicted []position) {
	if c.entries == nil {
		c.entries = map[string]*list.Element{}
	}
	if old := c.entries[id]; old != nil {
		evicted = append(evicted, c.remove(old))
	}
	e := cached{id, p, p.weight()}
	c.entries[id] = c.latest.PushFront(e)
	for c.weight += e.weight; c.weight > c.most; {
		evicted = append(evicted, c.remove(c.latest.Back()))
	}
	return evicted
}

// take removes and returns the position of an orchestration.
func (c *cache) take(id string) (p position, ok bool) {
	e := c.entries[id]
	if e == nil {
		return p, false
	}
	return c.remove(e), true
}

func (c *cache) remove(e *list.Element) position {
	of := c.latest.Remove(e).(cached)
	delete(c.entries, of.id)
	c.weight -= of.weight
	return of.position
}

// clear removes and returns everything.
func (c *cache) clear() (evicted []position) {
	for c.latest.Len() > 0 {
		evicted = append(evicted, c.remove(c.latest.Back()))
	}
	return evicted
}

// Close evicts the executions that the Runtime keeps in memory (Config.CachedEvents), which runs their deferred
// functions. No work is lost, and the Runtime continues to work, but no longer keeps executions.
func (r *Runtime) Close() {
	r.mu.Lock()
	r.cache.most = 0
	evicted := r.cache.clear()
	r.mu.Unlock()
	closeAll(evicted)
}

func closeAll(evicted []position) {
	for _, p := range evicted {
		p.execution.close()
	}
}

// keep puts the driver's position into the cache, if the orchestration waits and has no work in progress. It reports
// whether the execution belongs to the cache from then on.
func (d *driver) keep() bool {
	x := d.execution
	underWay := len(d.executor.inFlight)+len(d.learned)+len(x.decided)+len(d.unacknowledged)+len(d.matched) > 0 || d.unconfirmed != nil || d.callErr != nil
	if underWay || d.codeless || x.ended || x.stalled || x.partial || len(d.rounds) == 0 || d.pastOutcome != nil || d.waitsForEnd || d.hasSignals() || !x.resetTasks() {
		return false
	}
	x.watchdog = nil
	d.rt.mu.Lock()
	if d.rt.cache.most == 0 {
		d.rt.mu.Unlock()
		return false
	}
	evicted := d.rt.cache.put(d.start.ID, d.position)
	d.rt.mu.Unlock()
	closeAll(evicted)
	return true
}

// resetTasks sets the calls to their state after a replay, which does not know the work of drivers for them. It
// reports whether that is possible.
func (x *execution) resetTasks() bool {
	for _, t := range x.tasks {
		if t.done {
			continue
		}
		if t.kind == childTask && t.attempts > 0 {
			return false // the due time of the next attempt is no longer known
		}
		if t.kind == childTask {
			t.due = 0
		}
		t.begun, t.remote, t.foreign, t.rival, t.endedMeanwhile = false, false, false, false, false
	}
	return true
}

// restore continues from the position that the last driver of this process has left. It requires that a signal made
// this driver and that, by the status row, no round was committed since. It costs one read.
func (d *driver) restore(ctx context.Context) bool {
	d.rt.mu.Lock()
	p, ok := d.rt.cache.take(d.start.ID)
	d.rt.mu.Unlock()
	if !ok {
		return false
	}
	started := p.rounds[0].Learned[0]
	if !d.start.deliver || d.rt.versions[version{started.Name, started.start().Version}] == nil {
		p.execution.close()
		return false
	}
	row, err := d.rt.config.Tables.Get(ctx, d.rt.config.Table, tables.Key{Partition: tables.EscapeKey(d.start.ID), Row: statusRow})
	if err != nil || !p.isAt(row) {
		p.execution.close()
		return false // loading the rounds finds the cause
	}
	d.position = p
	d.noteStatus(row)
	d.start = startFrom(d.start.ID, started)
	d.start.deliver = true
	d.executor.start = d.start
	p.execution.watchdog = d.watchdog
	d.executor.attach(p.execution)
	return true
}

// isAt reports whether a status row was written with the last round of the position.
func (p *position) isAt(status tables.Entity) bool {
	return status.Int("StateVersion") == int64(p.version) && status.Int("Execution") == int64(p.execution.number) &&
		status.Time(columnCreated).UnixMicro() == p.createdAt.UnixMicro() && status.Time(columnExecutedOn).UnixMicro() == p.writtenAt.UnixMicro()
}
