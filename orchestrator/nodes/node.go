package nodes

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
	"github.com/vibedata/roundhouse/tables/hostlock"
)

// The defaults of a Config.
const (
	DefaultInterval = 10 * time.Second
	DefaultDeath    = 15 * time.Second
)

// ErrFenced: another node has taken over from this one, or this one has left. Uncommitted work can no longer be
// committed.
var ErrFenced = errors.New("another node has taken over")

// Config configures a Node. Tables, Queues, Queue and TakeOver are required.
type Config struct {
	Tables tables.Store
	// Table defaults to that of package hostlock.
	Table  string
	Queues queues.Store
	// Queue holds the sign of life. All nodes listen to it.
	Queue string
	// Name is the display name of the process; by default host name and process id. A node adds a unique suffix.
	Name string
	// Host names the host of the process: a process that follows another one under the same host takes over from it
	// immediately. "" disables this.
	Host string
	// PID is the process id; by default that of this process. Alive reports whether a process of this machine is
	// alive; by default it asks the operating system.
	PID   int
	Alive func(pid int) bool
	// Version is the version of the program, for display.
	Version string
	// Interval is how often a node with work renews its sign of life, and Death how long the sign stays hidden without
	// that; by default 10 s and 15 s. Death is at least one and a half intervals. A node with slow renewals hides its
	// sign for longer, up to 4 times Death.
	Interval, Death time.Duration
	// TakeOver continues the work of a dead node. It calls begun with the number of orchestrations when all of them
	// are running, or will continue without this process. It may work on them longer. It may be called again for the
	// same node.
	TakeOver func(ctx context.Context, lost Lost, begun func(orchestrations int)) error
	// Now is the clock; default time.Now.
	Now func() time.Time
	// Log defaults to no log.
	Log *slog.Logger
}

// Counts holds the counters of a Node since New.
type Counts struct {
	// Takeovers counts the nodes that this one took over from, TakenOver the orchestrations of these, and Fenced how
	// often others took over from this one although it was alive.
	Takeovers, TakenOver, Fenced int
}

// Node is this process among those of the app. Make it with New; it is safe for concurrent use.
type Node struct {
	config Config

	mu       sync.Mutex
	name     string
	started  time.Time
	held     map[int]held
	next     int
	unseen   bool          // the last renewal of the sign of life failed
	givenUp  []held        // released while it could not: a renewal may have succeeded nevertheless, and must not hide this work from a takeover
	idle     time.Time     // since when the node has no work
	beating  bool          // a goroutine renews the sign of life
	renewed  time.Time     // when the last renewal that succeeded began; zero without a sign of life
	took     time.Duration // duration of that renewal, a measure of the speed of storage
	hidden   time.Duration // how long that renewal hides the sign of life
	left     bool
	said     string    // text of the last Say
	news     bool      // the text is not in the row yet
	written  time.Time // when the state in the row was read; zero without a row
	outdated int       // how often outdateRow was called
	counts   Counts

	signing chan struct{} // guards sign
	sign    sign

	writing chan struct{} // held while the row is written

	work   context.Context // ends with Close
	stop   context.CancelFunc
	beats  sync.WaitGroup
	ending chan struct{} // closed by Leave and Close: no further renewal begins
	once   sync.Once
}

// New makes a Node. It makes no request.
func New(c Config) (*Node, error) {
	if c.Tables == nil || c.Queues == nil || c.Queue == "" || c.TakeOver == nil {
		return nil, errors.New("node: Tables, Queues, Queue and TakeOver are required")
	}
	if c.Table == "" {
		c.Table = hostlock.DefaultTable
	}
	if c.Interval == 0 {
		c.Interval = DefaultInterval
	}
	if c.Death == 0 {
		c.Death = max(DefaultDeath, c.Interval*3/2)
	}
	if c.Interval < time.Second || c.Death < c.Interval*3/2 || c.Death > time.Hour {
		return nil, fmt.Errorf("node: an interval of 1 s or more and an age of death of one and a half intervals to an hour are required, not %v and %v", c.Interval, c.Death)
	}
	if c.PID == 0 {
		c.PID = os.Getpid()
	}
	if c.Name == "" {
		host, _ := os.Hostname()
		c.Name = fmt.Sprintf("%s-%d", host, c.PID)
	}
	if c.Alive == nil {
		c.Alive = processLives
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	n := &Node{config: c, name: newName(c.Name), held: map[int]held{}, signing: make(chan struct{}, 1), writing: make(chan struct{}, 1), ending: make(chan struct{})}
	n.started = c.Now().UTC()
	n.work, n.stop = context.WithCancel(context.Background())
	return n, nil
}

// newName returns a name that no other node has, even a process with the same id on a host with the same name.
func newName(base string) string {
	return base + "-" + strings.ToLower(rand.Text()[:6])
}

// Name returns the name that this node writes into rows and rounds. It changes when the node is fenced.
func (n *Node) Name() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.name
}

// Counts returns the current counters.
func (n *Node) Counts() Counts {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.counts
}

// Hold marks an orchestration as in progress, until release is called, once. It does not wait for storage.
func (n *Node) Hold(orchestration string) (release func()) {
	return n.hold(held{orchestration: orchestration})
}

// HoldMessage marks a message as in progress that only its redelivery would reveal.
func (n *Node) HoldMessage(m Message) (release func()) { return n.hold(held{message: m}) }

// maxSaid bounds the text of Say, in bytes: a property has 32 Ki characters.
const maxSaid = 30 << 10

// Say publishes a text in the row of this node, within about an Interval; "" for none. It does not wait for storage.
// The text is in clear, and must be valid UTF-8 of at most 30 KiB; any other text is left out. A changed text costs
// one request, an unchanged one none.
func (n *Node) Say(text string) {
	if len(text) > maxSaid || !utf8.ValidString(text) {
		n.config.Log.Error("what this node says of itself is left out of its row: it is too long, or no text", "node", n.Name(), "bytes", len(text))
		text = ""
	}
	n.mu.Lock()
	same := n.said == text
	n.said, n.news = text, n.news || !same
	n.mu.Unlock()
	if !same {
		n.hold(held{})() // an idle node writes no row
	}
}

func (n *Node) hold(h held) (release func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	h.since = n.config.Now().UTC()
	n.next++
	key := n.next
	n.held[key] = h
	if !n.beating && !n.left {
		n.beating = true
		n.beats.Go(n.beat)
	}
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.unseen && len(n.givenUp) < maxGivenUp {
			n.givenUp = append(n.givenUp, n.held[key])
		}
		delete(n.held, key)
		n.idle = time.Now()
	}
}

// Confirm returns nil if the node of that name is alive to the others, and renews its sign of life if necessary.
// ErrFenced means that it is not, and never will be; other errors are those of storage.
func (n *Node) Confirm(ctx context.Context, name string) error {
	n.mu.Lock()
	current, fresh, left := n.name, n.isFresh(), n.left
	n.mu.Unlock()
	switch {
	case current != name || left:
		return fmt.Errorf("node %s: %w", name, ErrFenced)
	case fresh:
		return nil
	}
	if err := n.renew(ctx); err != nil {
		return fmt.Errorf("node %s: %w", name, err)
	}
	if n.Name() != name || n.isLeft() {
		return fmt.Errorf("node %s: %w", name, ErrFenced)
	}
	return nil
}

// isFresh reports whether the sign of life stays hidden for a while still. The caller holds mu.
func (n *Node) isFresh() bool {
	return !n.renewed.IsZero() && elapsed(n.renewed) < n.hidden-n.config.Death/8
}

// elapsed returns the time since a time. The monotonic clock may stop while the machine is suspended, and the wall
// clock may be set. The larger difference counts.
func elapsed(since time.Time) time.Duration {
	now := time.Now()
	return max(now.Sub(since), now.Round(0).Sub(since.Round(0)))
}

// Close ends the node's activity. Its sign of life remains, so that others take over its work; see Leave.
func (n *Node) Close() {
	n.end()
	n.beats.Wait()
}

// end prevents all further renewals.
func (n *Node) end() {
	n.once.Do(func() {
		n.mu.Lock()
		n.left = true
		n.mu.Unlock()
		close(n.ending)
		n.stop()
	})
}
