package nodes

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

const orchestrations = "orchestrations"

// storage is shared by the machines. It records every committed round.
type storage struct {
	t      *testing.T
	tables tables.Store
	queues *queues.Memory
	blobs  blobs.Store

	mu       sync.Mutex
	commits  []commit
	latest   map[string]commit   // by orchestration
	taken    map[string]taking   // by node
	takers   []string            // names, in order
	machines map[string]*machine // all machines, past and present
	receipts []receipt
	handed   map[string][]handing // by message
	claims   map[string]int       // takeovers of a node, by its name
	copies   map[string]int       // messages of a signal, by its id
}

// commit is one round as committed.
type commit struct {
	subject          string
	execution, round int
	node             string // the name in the status row
	by               *machine
	issued, at       time.Time // times of the machine's call, and of its effect in storage
	status           orchestrator.Status
}

func newStorage(t *testing.T) *storage {
	return &storage{t: t, tables: tables.NewMemory(), queues: queues.NewMemory(), blobs: blobs.NewMemory(), latest: map[string]commit{},
		taken: map[string]taking{}, machines: map[string]*machine{}, handed: map[string][]handing{}, copies: map[string]int{}, claims: map[string]int{}}
}

// origin is the machine that makes a call, and the time of the call.
type origin struct {
	by     *machine
	issued time.Time
}

type originKey struct{}

// stamped is the outermost store of a machine. It records the times of calls before any delay.
type stamped struct {
	tables.Store
	by *machine
}

func (s stamped) Apply(ctx context.Context, table string, ops ...tables.Op) error {
	return s.Store.Apply(context.WithValue(ctx, originKey{}, origin{s.by, time.Now()}), table, ops...)
}

// observed is the innermost store: it sees calls that take effect.
type observed struct {
	tables.Store
	seen *storage
}

func (o observed) Apply(ctx context.Context, table string, ops ...tables.Op) error {
	o.seen.mu.Lock()
	defer o.seen.mu.Unlock()
	if err := o.Store.Apply(ctx, table, ops...); err != nil {
		return err
	}
	from, _ := ctx.Value(originKey{}).(origin)
	if table == orchestrations {
		o.seen.applied(from, ops)
	}
	if table == nodesTable {
		o.seen.signed(from, ops)
	}
	return nil
}

// applied checks that rounds are inserted in sequence, and none after the end.
func (s *storage) applied(from origin, ops []tables.Op) {
	c := commit{by: from.by, issued: from.issued, at: time.Now()}
	for _, op := range ops {
		row := op.Entity.Row
		switch {
		case row == "status" && op.Kind != tables.OpDelete:
			c.subject, _, _ = cutLast(op.Entity.String("RuntimeInstanceId"), "/")
			c.node, c.status = op.Entity.String("LastExecutedBy"), orchestrator.Status(op.Entity.String("RuntimeStatus"))
		case !strings.HasPrefix(row, "r-"):
		case op.Kind == tables.OpInsert:
			c.execution, c.round = roundOf(row)
		case op.Kind == tables.OpDelete:
		default:
			s.t.Errorf("the round %s of %s is changed by %s", row, op.Entity.Partition, from.by)
		}
	}
	if c.round == 0 {
		return
	}
	if from.by != nil {
		from.by.tell("commits %s: %s", c, c.status)
	}
	before, known := s.latest[c.subject]
	next := c.execution == before.execution && c.round == before.round+1 || c.execution == before.execution+1 && c.round == 1
	if !next {
		s.t.Errorf("%s: round %d-%d follows %d-%d", c.subject, c.execution, c.round, before.execution, before.round)
	}
	if known && before.status.Ended() {
		s.t.Errorf("%s: round %d-%d by %s (%s) after the end (%s) by %s", c.subject, c.execution, c.round, c.node, c.status, before.status, before.node)
	}
	s.commits, s.latest[c.subject] = append(s.commits, c), c
}

func roundOf(row string) (execution, round int) {
	_, _ = fmt.Sscanf(row, "r-%08d-%08d", &execution, &round) // the caller reports a zero
	return execution, round
}

func cutLast(s, separator string) (before, after string, found bool) {
	i := strings.LastIndex(s, separator)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(separator):], true
}

// status returns the state of an orchestration.
func (s *storage) status(subject string) commit {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.latest[subject]
}

// wentOn finds the first round of an orchestration after a time that counts for the caller.
func (s *storage) wentOn(subject string, after time.Time, counts func(commit) bool) (commit, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.commits {
		if c.subject == subject && c.at.After(after) && counts(c) {
			return c, true
		}
	}
	return commit{}, false
}

// ledger records the outside effects of activities.
type ledger struct {
	mu   sync.Mutex
	runs map[string][]activityRun // by idempotency key
	done map[string]int
}

type activityRun struct {
	by *machine
	at time.Time
}

func (l *ledger) began(key string, by *machine) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runs[key] = append(l.runs[key], activityRun{by, time.Now()})
}

func (l *ledger) did(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done[key]++
}

func (l *ledger) count(key string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.done[key]
}

func (c commit) String() string {
	return c.subject + " " + strconv.Itoa(c.execution) + "-" + strconv.Itoa(c.round) + " by " + c.node
}

// handing is a message that a host received.
type handing struct {
	by *machine
	at time.Time
}

func (s *storage) handedTo(m *machine, message queues.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handed[message.ID] = append(s.handed[message.ID], handing{m, time.Now()})
}

// cameAgain returns when another machine received a message after a time.
func (s *storage) cameAgain(message string, after time.Time, than *machine) (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.handed[message] {
		if h.by != than && h.at.After(after) {
			return h.at, true
		}
	}
	return time.Time{}, false
}

// lastHanded returns the machine that received a message last.
func (s *storage) lastHanded(message string) *machine {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.handed[message]
	return all[len(all)-1].by
}

// sending is the innermost queue store of a runtime. It counts the copies of signals.
type sending struct {
	queues.Store
	seen *storage
}

func (s sending) Send(ctx context.Context, queue string, body []byte, delay time.Duration) (string, error) {
	if signal, err := orchestrator.DecodeSignal(body); err == nil {
		s.seen.mu.Lock()
		s.seen.copies[signal.SignalID]++
		s.seen.mu.Unlock()
	}
	return s.Store.Send(ctx, queue, body, delay)
}
