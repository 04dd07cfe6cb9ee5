package cli

import (
	"context"
	"encoding/json"
	"time"
)

// Pollers is what the commands do to pollers: to their state documents, whether the app runs or not. A change frees the
// lease and fences its owner, in one write.
type Pollers interface {
	// List gives the names of the pollers that are defined here or have a state, ascending.
	List(ctx context.Context) ([]string, error)
	// Show reads a state. A document that is damaged comes with its error.
	Show(ctx context.Context, poller string) (PollerState, error)
	// Lag says how far a poller is behind its source.
	Lag(ctx context.Context, poller string) (PollerLag, error)
	// Change makes a change, or says what it would do.
	Change(ctx context.Context, poller string, c PollerChange) (PollerEffect, error)
}

// PollerState is a state as it is now. Document is the text of the document, Time the clock of its store, Live says that a
// process has the lease. Condition is how the poller is, in one word, and Problem the error that it has met last, "" for none.
type PollerState struct {
	Document  json.RawMessage `json:"document,omitempty"`
	Time      time.Time       `json:"timeUtc,omitzero"`
	Live      bool            `json:"live"`
	Condition string          `json:"condition"`
	Problem   string          `json:"problem,omitempty"`
}

// The conditions that doctor warns of, as package poller has them.
const (
	pollerDamaged = "damaged"
	pollerStopped = "stopped"
	pollerFailing = "failing"
	pollerNew     = "new"
)

// PollerLag is how far a poller is behind: places are as people read them. Behind is the time between them, where places are
// times; HeldBack says why rows that are there are not delivered yet, and Retained how
// many bytes of log the database keeps until the poller has got on.
type PollerLag struct {
	Poller   string        `json:"poller"`
	Place    string        `json:"place"`
	End      string        `json:"end"`
	CaughtUp bool          `json:"caughtUp"`
	Behind   time.Duration `json:"behindNs,omitempty"`
	PolledAt time.Time     `json:"polledAtUtc,omitzero"`
	HeldBack string        `json:"heldBack,omitempty"`
	Retained int64         `json:"retainedBytes,omitempty"`
}

// PollerChangeKind is what a change does.
type PollerChangeKind string

// The kinds of changes, by the commands that make them.
const (
	ResetToBeginning  PollerChangeKind = "reset-to-beginning"
	ResetToCheckpoint PollerChangeKind = "reset-to-checkpoint"
	ResetToCursor     PollerChangeKind = "reset-to-cursor"
	CloneCheckpoint   PollerChangeKind = "clone-checkpoint"
	AcceptFingerprint PollerChangeKind = "accept-fingerprint"
	BreakLease        PollerChangeKind = "break-lease"
	Retire            PollerChangeKind = "retire"
)

// PollerChange is a change of a state.
type PollerChange struct {
	Kind PollerChangeKind
	// File is the checkpoint to reset to. CursorKind, Value and Keys are the place: the kind is that of the checkpoint when
	// it is "", and Keys is a JSON object of the key columns, nil for none. To is the name of a clone.
	File              []byte
	CursorKind, Value string
	Keys              json.RawMessage
	To                string
	// DryRun changes nothing. Force goes on under a live lease, and takes a file of another poller or definition.
	DryRun, Force bool
}

// PollerEffect is what a change has done, or would do. Before is nil where there was no document. Fenced says that a process
// had the lease.
type PollerEffect struct {
	Poller  string          `json:"poller"`
	Before  json.RawMessage `json:"before,omitempty"`
	After   json.RawMessage `json:"after"`
	Applied bool            `json:"applied"`
	Fenced  bool            `json:"fenced"`
}
