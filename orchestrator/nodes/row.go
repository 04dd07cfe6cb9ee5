package nodes

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/tables"
	"github.com/vibedata/roundhouse/tables/hostlock"
)

const (
	partition  = "nodes"
	nodePrefix = "node-"
	signPrefix = "sign-"
)

const (
	columnNode     = "Node"
	columnHost     = "Host"
	columnPID      = "PID"
	columnVersion  = "Version"
	columnState    = "State"
	columnSince    = "SinceUtc"
	columnSeen     = "SeenUtc"
	columnNumber   = "Number"
	columnHand     = "Hand"
	columnBy       = "TakenBy"
	columnAt       = "AtUtc"
	columnBegun    = "BegunUtc"
	columnFinished = "Finished"
	columnTaken    = "Taken"
	columnSaid     = "Said"
)

// State is the state of a node.
type State string

// These are the states of nodes.
const (
	StateAlive State = "alive" // as of its last sign of life; a node without work has none
	StateGone  State = "gone"  // it has left
	StateTaken State = "taken" // another node has taken over from it

	stateDropped State = "dropped" // of a sign of life: the node continues with the next one
)

// Info is the description of a node in the tables.
type Info struct {
	Name    string
	Host    string
	PID     int
	Version string
	State   State
	// Since is when it began to work under this name, Seen the time of the last sign of life in its row: with work, it
	// writes one a minute. Both are by its own clock.
	Since, Seen time.Time
	// Hand is its work at that time.
	Hand Hand
	// Said is its text when it wrote its row; see Node.Say.
	Said string
	// TakenBy is the node that took over from it, TakenAt when, and TakenOver how many orchestrations it took over.
	// Finished is set when all of them are running.
	TakenBy   string
	TakenAt   time.Time
	TakenOver int
	Finished  bool

	number int
}

// rowTimeout bounds the write of a row that no renewal waits for.
const rowTimeout = time.Minute

// writeRow writes the row that describes this node to others. The caller holds signing.
func (n *Node) writeRow(ctx context.Context, state State) error {
	select {
	case n.writing <- struct{}{}:
		defer func() { <-n.writing }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return n.newRow(state).write(ctx)
}

// writeRowLater writes the row in the background, unless a write is in progress: a slow table must not delay the next renewal. The caller
// holds signing.
func (n *Node) writeRowLater() {
	n.mu.Lock()
	left := n.left
	n.mu.Unlock()
	if left {
		return
	}
	select {
	case n.writing <- struct{}{}:
	default:
		return
	}
	row := n.newRow(StateAlive)
	write := func() {
		defer func() { <-n.writing }()
		ctx, cancel := context.WithTimeout(n.work, rowTimeout)
		defer cancel()
		if err := row.write(ctx); err != nil && n.work.Err() == nil { // the message alone decides
			n.config.Log.WarnContext(ctx, "the row of this node cannot be written", "node", row.name, "error", err.Error())
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.left {
		<-n.writing
		return
	}
	n.beats.Go(write)
}

// outdateRow has the row written with the next renewal, also if an older state of it is being written.
func (n *Node) outdateRow() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.written = time.Time{}
	n.outdated++
}

// row is the state of a node at one time.
type row struct {
	node   *Node
	name   string
	number int       // of outdateRow calls before
	began  time.Time // work that is released from then on may be in the row
	said   string
	entity tables.Entity
}

// newRow returns the row that describes this node now. The caller holds signing.
func (n *Node) newRow(state State) row {
	began := time.Now()
	s := n.note()
	hand, _ := json.Marshal(s.Hand) // strings, numbers and times can be marshaled
	n.mu.Lock()
	since, said, number := n.started, n.said, n.outdated
	n.mu.Unlock()
	return row{n, s.Name, number, began, said, tables.Entity{Key: tables.Key{Partition: partition, Row: tables.EscapeKey(nodePrefix + s.Name)},
		Properties: map[string]any{columnNode: s.Name, columnHost: n.config.Host, columnPID: int64(n.config.PID), columnVersion: n.config.Version,
			columnState: string(state), columnSince: since, columnSeen: s.Hand.At, columnNumber: int64(s.Number), columnHand: string(hand), columnSaid: said}}}
}

func (r row) write(ctx context.Context) error {
	if err := r.node.config.Tables.Apply(ctx, r.node.config.Table, tables.Upsert(r.entity)); err != nil {
		return fmt.Errorf("write the row of node %s: %w", r.name, err)
	}
	r.node.mu.Lock()
	defer r.node.mu.Unlock()
	if r.node.outdated == r.number {
		r.node.written, r.node.news = r.began, r.node.said != r.said
	}
	return nil
}

func infoOf(e tables.Entity) Info {
	return Info{Name: e.String(columnNode), Host: e.String(columnHost), PID: int(e.Int(columnPID)), Version: e.String(columnVersion), State: State(e.String(columnState)),
		Since: e.Time(columnSince), Seen: e.Time(columnSeen), Hand: parseHand(e.String(columnHand)), Said: e.String(columnSaid), number: int(e.Int(columnNumber))}
}

func parseHand(text string) (h Hand) {
	_ = json.Unmarshal([]byte(text), &h) // a damaged text is ignored; the scan by name finds committed work
	return h
}

// ended is the end of a sign of life.
type ended struct {
	Node     string
	Number   int
	State    State // StateTaken or stateDropped
	By       string
	At       time.Time // when By claimed the takeover, or confirmed last that it is working on it; long ago after a failure
	Begun    time.Time // when the first takeover began
	Hand     Hand
	Finished bool
	Taken    int

	etag     string
	repeated bool // a takeover was begun before
}

func (e ended) key() tables.Key {
	return tables.Key{Partition: partition, Row: tables.EscapeKey(fmt.Sprintf("%s%s-%08d", signPrefix, e.Node, e.Number))}
}

func (e ended) entity() tables.Entity {
	properties := map[string]any{columnNode: e.Node, columnNumber: int64(e.Number), columnState: string(e.State), columnBy: e.By, columnAt: e.At, columnFinished: e.Finished, columnTaken: int64(e.Taken)}
	if !e.Begun.IsZero() {
		properties[columnBegun] = e.Begun
	}
	if hand, err := json.Marshal(e.Hand); err == nil && e.State == StateTaken {
		properties[columnHand] = string(hand)
	}
	return tables.Entity{Key: e.key(), ETag: e.etag, Properties: properties}
}

func endedOf(e tables.Entity) ended {
	begun := e.Time(columnBegun)
	if begun.IsZero() { // written by a version without it
		begun = e.Time(columnAt)
	}
	return ended{Begun: begun, Node: e.String(columnNode), Number: int(e.Int(columnNumber)), State: State(e.String(columnState)), By: e.String(columnBy), At: e.Time(columnAt),
		Hand: parseHand(e.String(columnHand)), Finished: e.Bool(columnFinished), Taken: int(e.Int(columnTaken)), etag: e.ETag}
}

// rows reads all rows of the partition; they are few, because Sweep deletes old ones.
func rows(ctx context.Context, store tables.Store, table string) (nodes []Info, signs []ended, err error) {
	q := tables.Query{Partition: partition}
	for {
		page, err := store.Query(ctx, table, q)
		if err != nil {
			return nil, nil, fmt.Errorf("read the nodes: %w", err)
		}
		for _, e := range page.Entities {
			if strings.HasPrefix(e.Row, tables.EscapeKey(nodePrefix)) {
				nodes = append(nodes, infoOf(e))
			} else {
				signs = append(signs, endedOf(e))
			}
		}
		if q.Continuation = page.Next; page.Next == "" {
			break
		}
	}
	for i, info := range nodes {
		for _, e := range signs {
			if e.Node == info.Name && e.State == StateTaken {
				nodes[i].State, nodes[i].TakenBy, nodes[i].TakenAt, nodes[i].TakenOver, nodes[i].Finished = StateTaken, e.By, e.At, e.Taken, e.Finished
			}
		}
	}
	return nodes, signs, nil
}

// List returns the nodes that have been seen within the last day, the latest first. table is Config.Table; "" is its
// default.
func List(ctx context.Context, store tables.Store, table string) ([]Info, error) {
	if table == "" {
		table = hostlock.DefaultTable
	}
	nodes, _, err := rows(ctx, store, table)
	slices.SortFunc(nodes, func(a, b Info) int {
		return cmp.Or(b.Seen.Compare(a.Seen), strings.Compare(a.Name, b.Name))
	})
	return nodes, err
}
