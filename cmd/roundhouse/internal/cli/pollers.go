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
	// Explain says why the row of a key has come or has not. The key is a JSON object of the key columns, or the value of the only one.
	Explain(ctx context.Context, poller, key string) (PollerExplanation, error)
	// Plan says what the next fetch would do. It counts waiting rows up to count, and shows values only when they are asked for.
	Plan(ctx context.Context, poller string, count int, values bool) (PollerPlan, error)
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

// PollerExplanation is why a row has come or has not. Cursor is the place of the row, Place that of the poller, and End that of its
// backfill. CorrelationID is that of everything that came of this version of the row.
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

// PollerLetter is a dead letter of a row. Same says that it is of the version that the row has now.
type PollerLetter struct {
	RowKey string `json:"rowKey"`
	Status string `json:"status"`
	Same   bool   `json:"sameVersion"`
}

// PollerPlan is what the next fetch of a poller would do, and how far it is. Delivered is 0 and Estimated -1 when they are not known.
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

// PollerCount is a number of rows; AtLeast says that there are more.
type PollerCount struct {
	Rows    int  `json:"rows"`
	AtLeast bool `json:"atLeast,omitempty"`
}

// PollerParameter is the value of a placeholder in a statement.
type PollerParameter struct {
	Type  string `json:"type"`
	Value string `json:"value,omitempty"`
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

// PollerMaker proposes definitions of new pollers.
type PollerMaker interface {
	// Propose asks the database for a table.
	Propose(ctx context.Context, q PollerQuestion) (PollerProposal, error)
	// Write puts the definition of a proposal into a file as local.settings.json. It refuses a poller that is there already.
	Write(file string, p PollerProposal) error
}

// PollerQuestion is about a table for which a poller is wanted. Name, SourceID, Cursor and Keys are found when they are empty.
type PollerQuestion struct {
	Name, Table, Dialect, SourceID, Cursor string
	Keys                                   []string
	// Setting holds the connection string, in the environment or in File.
	Setting, File string
	// Engine with Operation and InstanceColumn, or EventType, say where rows go, Tenant or TenantColumn whose they are.
	Engine, Operation, InstanceColumn, EventType, Tenant, TenantColumn string
	Timeout                                                            time.Duration
}

// PollerProposal is a definition, as a member of the object that ROUNDHOUSE_POLLERS is, and why it is so.
type PollerProposal struct {
	Poller     string          `json:"poller"`
	Definition json.RawMessage `json:"definition"`
	Reasons    []string        `json:"reasons"`
	Advice     []string        `json:"advice"`
	Missing    []PollerRemedy  `json:"missing"`
	// Ready says that it can run, Problem why the check refuses it.
	Ready   bool   `json:"ready"`
	Problem string `json:"problem,omitempty"`
}

// PollerRemedy is what a table lacks, as statements.
type PollerRemedy struct {
	Why string `json:"why"`
	SQL string `json:"sql"`
}
