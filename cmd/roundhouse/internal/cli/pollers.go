package cli

import (
	"context"
	"encoding/json"
	"time"
)

// Pollers reads and changes the state documents of pollers, whether the app runs or not. A change frees the lease and
// fences its owner, in one write.
type Pollers interface {
	// List returns the names of the pollers that are defined here or have a state, ascending.
	List(ctx context.Context) ([]string, error)
	// Show reads a state. A damaged document is returned with its error.
	Show(ctx context.Context, poller string) (PollerState, error)
	// Lag returns how far a poller is behind its source.
	Lag(ctx context.Context, poller string) (PollerLag, error)
	// Explain explains why the row of a key was delivered or not. The key is a JSON object of the key columns, or the
	// value of the only one.
	Explain(ctx context.Context, poller, key string) (PollerExplanation, error)
	// Plan describes the next fetch. It counts waiting rows up to count, and includes values only on request.
	Plan(ctx context.Context, poller string, count int, values bool) (PollerPlan, error)
	// Change makes a change, or describes its effect.
	Change(ctx context.Context, poller string, c PollerChange) (PollerEffect, error)
}

// PollerState is the current state. Document is the text of the document, Time the clock of its store, Live means
// that a process has the lease. Condition is the poller's condition in one word, and Problem its last error, "" for
// none.
type PollerState struct {
	Document  json.RawMessage `json:"document,omitempty"`
	Time      time.Time       `json:"timeUtc,omitzero"`
	Live      bool            `json:"live"`
	Condition string          `json:"condition"`
	Problem   string          `json:"problem,omitempty"`
}

// The conditions that doctor reports, as in package poller.
const (
	pollerDamaged = "damaged"
	pollerStopped = "stopped"
	pollerFailing = "failing"
	pollerNew     = "new"
)

// PollerLag is how far a poller is behind, with readable places. Behind is the time between them, if places are
// times; HeldBack is the reason why existing rows are not delivered yet, and Retained the bytes of log that the
// database keeps for the poller.
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

// PollerExplanation explains why a row was delivered or not. Cursor is the place of the row, Place that of the
// poller, and End that of its backfill. CorrelationID is that of all results of this version of the row.
type PollerExplanation struct {
	Poller        string          `json:"poller"`
	Key           json.RawMessage `json:"key,omitempty"`
	Verdict       string          `json:"verdict"`
	Why           string          `json:"why"`
	Cursor        string          `json:"cursor,omitempty"`
	Place         string          `json:"place"`
	End           string          `json:"end,omitempty"`
	Condition     string          `json:"condition"`
	Problem       string          `json:"problem,omitempty"`
	EventID       string          `json:"eventId,omitempty"`
	CorrelationID string          `json:"correlationId,omitempty"`
	DeadLetters   []PollerLetter  `json:"deadLetters"`
}

// PollerLetter is a dead letter of a row. Same means that it belongs to the current version of the row.
type PollerLetter struct {
	RowKey string `json:"rowKey"`
	Status string `json:"status"`
	Same   bool   `json:"sameVersion"`
}

// PollerPlan describes the next fetch of a poller, and its progress. Delivered is 0 and Estimated -1 if unknown.
type PollerPlan struct {
	Poller     string            `json:"poller"`
	Place      string            `json:"place"`
	End        string            `json:"end,omitempty"`
	Delivered  int64             `json:"delivered"`
	Estimated  int64             `json:"estimatedRows"`
	Due        PollerCount       `json:"due"`
	Waiting    PollerCount       `json:"waiting"`
	HeldBack   string            `json:"heldBack,omitempty"`
	Order      []string          `json:"order"`
	Index      string            `json:"index,omitempty"`
	Missing    string            `json:"missing,omitempty"`
	Statement  string            `json:"statement"`
	Parameters []PollerParameter `json:"parameters"`
	Explain    []string          `json:"explain"`
}

// PollerCount is a number of rows; AtLeast means that more exist.
type PollerCount struct {
	Rows    int  `json:"rows"`
	AtLeast bool `json:"atLeast,omitempty"`
}

// PollerParameter is the value of a placeholder in a statement.
type PollerParameter struct {
	Type  string `json:"type"`
	Value string `json:"value,omitempty"`
}

// PollerChangeKind is the kind of a change.
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
	// File is the checkpoint to reset to. CursorKind, Value and Keys are the place: an empty kind is that of the
	// checkpoint, and Keys is a JSON object of the key columns, nil for none. To is the name of a clone.
	File              []byte
	CursorKind, Value string
	Keys              json.RawMessage
	To                string
	// DryRun changes nothing. Force ignores a live lease, and accepts a file of another poller or definition.
	DryRun, Force bool
}

// PollerEffect is the effect of a change, made or planned. Before is nil without a previous document. Fenced means
// that a process had the lease.
type PollerEffect struct {
	Poller  string          `json:"poller"`
	Before  json.RawMessage `json:"before,omitempty"`
	After   json.RawMessage `json:"after"`
	Applied bool            `json:"applied"`
	Fenced  bool            `json:"fenced"`
}

// PollerMaker proposes definitions of new pollers.
type PollerMaker interface {
	// Propose inspects a table of the database.
	Propose(ctx context.Context, q PollerQuestion) (PollerProposal, error)
	// Write adds the definition of a proposal to a file such as local.settings.json. It refuses an existing poller.
	Write(file string, p PollerProposal) error
}

// PollerQuestion describes a table and the wanted poller. Empty Name, SourceID, Cursor and Keys are determined.
type PollerQuestion struct {
	Name, Table, Dialect, SourceID, Cursor string
	Keys                                   []string
	// Setting holds the connection string, in the environment or in File.
	Setting, File string
	// Engine with Operation and InstanceColumn, or EventType, select the destination of rows, Tenant or TenantColumn
	// their owner.
	Engine, Operation, InstanceColumn, EventType, Tenant, TenantColumn string
	Timeout                                                            time.Duration
}

// PollerProposal is a definition, as a member of the object in ROUNDHOUSE_POLLERS, with the reasons.
type PollerProposal struct {
	Poller     string          `json:"poller"`
	Definition json.RawMessage `json:"definition"`
	Reasons    []string        `json:"reasons"`
	Advice     []string        `json:"advice"`
	Missing    []PollerRemedy  `json:"missing"`
	// Ready means that it can run, Problem is the reason why the check refuses it.
	Ready   bool   `json:"ready"`
	Problem string `json:"problem,omitempty"`
}

// PollerRemedy is a missing part of a table, with the statements that add it.
type PollerRemedy struct {
	Why string `json:"why"`
	SQL string `json:"sql"`
}
