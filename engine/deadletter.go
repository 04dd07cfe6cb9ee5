package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/tables"
)

// DefaultDeadLetterTable is the dead-letter table's name (standard, section 6).
const DefaultDeadLetterTable = "engineDlq"

// DeadLetterStatus is the status of a dead letter (standard, section 2).
type DeadLetterStatus string

// The statuses of dead letters.
const (
	StatusPending  DeadLetterStatus = "Pending"
	StatusResolved DeadLetterStatus = "Resolved"
	StatusExpired  DeadLetterStatus = "Expired"
)

// Reason is the machine-readable reason why a message became a dead letter.
type Reason string

// The reasons that the pipeline sets.
const (
	ReasonUndecodable       Reason = "Undecodable"       // the body is no message
	ReasonUnknownEngine     Reason = "UnknownEngine"     // no engine with this name runs here
	ReasonOverSize          Reason = "OverSize"          // the message, or a part of it, is too long
	ReasonPermanent         Reason = "Permanent"         // the run failed with an error that another attempt cannot fix
	ReasonAttemptsExhausted Reason = "AttemptsExhausted" // the run failed in every attempt
	ReasonPoison            Reason = "Poison"            // the host moved the message to the poison queue
	ReasonStalled           Reason = "Stalled"           // the code cannot continue its run; when it is fixed, the run continues by itself
	// the correlation id belongs to other work: of another operation, instance or input
	ReasonCorrelationConflict Reason = "CorrelationConflict"
	ReasonInconsistent        Reason = "Inconsistent" // the rows of the message's orchestration are damaged
	// of a signal: the orchestrator is not registered, and the orchestration has not started
	ReasonUnknownOrchestrator Reason = "UnknownOrchestrator"
	ReasonNotFound            Reason = "NotFound" // of a signal: its orchestration does not exist, and was not started while the signal was kept
	// not every consumer acknowledged a new version of a credential in time, so the previous one was not retired
	ReasonNotAcknowledged Reason = "NotAcknowledged"
	// a credential was enabled again before its removal, so it was not removed
	ReasonStillInUse Reason = "StillInUse"
)

// DeadLetter is one row of the dead-letter table: a message that needs an operator (standard, section 2).
type DeadLetter struct {
	// Engine is the engine's name and the row's partition.
	Engine string
	// RowKey is the escaped message id, a hyphen and InsertedAtUtc as 20060102T150405.000000Z. Reads set it; Add
	// computes it.
	RowKey string
	// MessageID is the id that the queue gave the message.
	MessageID string
	// InsertedAtUtc is when the message entered its queue, according to the queue, so that it is the same for every
	// delivery. It is zero when the queue does not say; the key then has the year 1970.
	InsertedAtUtc time.Time
	// InstanceID is the managed instance, or publisher; "" when the message names none.
	InstanceID string
	// TenantID is the tenant of the message, "" for the platform. An unreadable message belongs to the platform.
	TenantID string
	// OriginalQueue is the queue that the message came from, or N/A.
	OriginalQueue string
	// OriginalMessage is the body of the message, byte for byte, so that it can be sent again. It and SentMessage are the only
	// columns that are not redacted. Lists leave it out.
	OriginalMessage []byte
	// ErrorMessage is the last error. Lists show its first KiB.
	ErrorMessage string
	// ErrorSignature groups dead letters of one cause; Add computes it with ErrorSignature when it is "".
	ErrorSignature string
	// DetectedReason is the reason why the message became a dead letter; "" when its producer gave none.
	DetectedReason Reason
	// DequeueCount is the number of attempts.
	DequeueCount int
	// FirstFailureAtUtc and LastFailureAtUtc are when the first and the last attempt failed. Lists are ordered by the
	// last. A zero FirstFailureAtUtc means the same time as the last.
	FirstFailureAtUtc, LastFailureAtUtc time.Time
	// Status is StatusPending when it is "".
	Status DeadLetterStatus
	// ResolutionNotes, ResolvedAtUtc and ResolvedBy are zero until it is resolved. Lists leave them out.
	ResolutionNotes string
	ResolvedAtUtc   time.Time
	ResolvedBy      string
	// ExpiredAtUtc is when it was expired; its retention counts from then.
	ExpiredAtUtc time.Time
	// RetryID, RetriedAtUtc and RetriedBy are set when a retry claims the dead letter, RetryMessageID when the message
	// is sent again.
	RetryID        string
	RetriedAtUtc   time.Time
	RetriedBy      string
	RetryMessageID string
	// SentMessage is the edited message that a retry sends in place of OriginalMessage, nil for none. Lists leave it out.
	SentMessage []byte
	// Assignee is the id of the assignee, "" for none; AssigneeName is a display name, and AssignedAtUtc the time of
	// the assignment.
	Assignee, AssigneeName string
	AssignedAtUtc          time.Time
	// Notes are comments without a decision, oldest first. Lists leave them out.
	Notes []Note
	// ParentRowKey is the dead letter whose retry failed and led to this one, "" for none. RetryCount is the number
	// of such retries.
	ParentRowKey string
	RetryCount   int
	// CorrelationID names the run.
	CorrelationID string
	// Node is the process that abandoned the message; "" when its producer gave none.
	Node string
	// ETag is the version of the row. Get sets it; Add ignores it.
	ETag string
}

// DeadLetterFilter selects dead letters (standard, section 3). A zero field does not filter.
type DeadLetterFilter struct {
	// Engines are the engines to list, at least one.
	Engines    []string
	Status     DeadLetterStatus
	InstanceID string
	// TenantID limits the list to a tenant, compared without case. "" is the platform, which sees all.
	TenantID      string
	CorrelationID string
	// Assignee is the id of an assignee, and Unassigned selects dead letters without one.
	Assignee   string
	Unassigned bool
	// ErrorSignature is the signature of one group.
	ErrorSignature string
	// From is inclusive and To exclusive; both are compared with LastFailureAtUtc.
	From, To time.Time
	// Limit is the length of the page, 1 to MaxLimit; 0 means DefaultLimit.
	Limit int
	// Token is DeadLetterPage.Token of the page before.
	Token string
}

// DeadLetterPage is one page of a list, newest failure first.
type DeadLetterPage struct {
	DeadLetters []DeadLetter
	// Token continues the list; "" on the last page. A page with a token is never empty.
	Token string
}

// DeadLetters is the dead-letter table (standard, sections 2 and 3). It is safe for concurrent use.
type DeadLetters struct {
	store     tables.Store
	table     string
	instances *instances
	added     func(ctx context.Context, letter DeadLetter) error
	// owners decide on the dead letters of their engines.
	owners map[string]OwnerFunc
}

// OnAdd registers fn, which is called for every pending dead letter passed to Add, at least once; when fn fails, so
// does Add. Call OnAdd before the first Add.
func (d *DeadLetters) OnAdd(fn func(ctx context.Context, letter DeadLetter) error) { d.added = fn }

// NewDeadLetters uses a table of the store; "" means DefaultDeadLetterTable.
func NewDeadLetters(store tables.Store, table string) *DeadLetters {
	table = cmp.Or(table, DefaultDeadLetterTable)
	return &DeadLetters{store: store, table: table, instances: newInstances(store, table)}
}

// CreateTable makes sure that the table exists.
func (d *DeadLetters) CreateTable(ctx context.Context) error {
	if err := d.store.CreateTable(ctx, d.table); err != nil {
		return fmt.Errorf("create the dead-letter table: %w", err)
	}
	return nil
}

// Register declares the index by instance complete for engines without dead letters, so that lists need not wait for
// Retention.
func (d *DeadLetters) Register(ctx context.Context, engines []string) error {
	return d.instances.begin(ctx, engines, time.Now())
}

// Add writes a dead letter (standard, section 1.3) exactly once: the first writer for a message wins. created is
// false when the dead letter existed, which then stays unchanged; after an error with an unknown outcome it may be
// the caller's own.
//
// ErrorMessage is redacted and cut at 16 KiB. The errors are ErrIDTooLong, an error for a dead letter without required
// fields, and those of the store.
func (d *DeadLetters) Add(ctx context.Context, letter DeadLetter) (created bool, err error) {
	if err := letter.prepare(); err != nil {
		return false, fmt.Errorf("add dead letter %s/%s: %w", letter.Engine, clip(letter.MessageID, MaxIDLength), err)
	}
	main := letter.entity()
	letter.RowKey = main.Row
	ops := []tables.Op{tables.Insert(main)}
	for _, row := range letter.indexRows(main) {
		ops = append(ops, tables.Insert(row))
	}
	err = d.applyCounted(ctx, main.Key, letter, "", letter.Status, ops...)
	switch {
	case errors.Is(err, tables.ErrExists):
		if _, err := d.store.Get(ctx, d.table, main.Key); err != nil { // Add reads the row, so that a wrong answer does not lose a dead letter
			return false, fmt.Errorf("add dead letter %s, which exists: %w", main.Key, err)
		}
		return false, d.notifyAdded(ctx, letter)
	case err != nil:
		return false, fmt.Errorf("add dead letter %s: %w", main.Key, err)
	}
	return true, d.notifyAdded(ctx, letter)
}

func (d *DeadLetters) notifyAdded(ctx context.Context, letter DeadLetter) error {
	if d.added == nil || letter.Status != StatusPending {
		return nil
	}
	return d.added(ctx, letter)
}

// Pending returns the pending dead letters of a run, newest first, with the fields of a list. An empty result is not
// an error.
func (d *DeadLetters) Pending(ctx context.Context, engine, correlationID string) ([]DeadLetter, error) {
	prefix := correlationPrefix(correlationID)
	from, to := indexRange(prefix, time.Time{}, time.Time{})
	q := tables.Query{
		Partition: tables.EscapeKey(engine),
		From:      from,
		To:        to,
		Where:     map[string]any{"CorrelationId": cleanText(correlationID), "Status": string(StatusPending)},
	}
	var letters []DeadLetter
	for e, err := range tables.All(ctx, d.store, d.table, q) {
		if err != nil {
			return nil, fmt.Errorf("read pending dead letters of %s/%s: %w", engine, correlationID, err)
		}
		letter, err := deadLetterOf(e)
		if err != nil {
			return nil, fmt.Errorf("read pending dead letters of %s/%s: %w", engine, correlationID, err)
		}
		letters = append(letters, letter)
	}
	return letters, nil
}

// Get reads one dead letter. The error is ErrNotFound, or one of the store.
func (d *DeadLetters) Get(ctx context.Context, engine, rowKey string) (DeadLetter, error) {
	key, ok := mainKey(engine, rowKey)
	if !ok {
		return DeadLetter{}, fmt.Errorf("get dead letter: %w", ErrNotFound)
	}
	e, err := d.store.Get(ctx, d.table, key)
	switch {
	case errors.Is(err, tables.ErrNotFound):
		return DeadLetter{}, fmt.Errorf("get dead letter %s: %w", key, ErrNotFound)
	case err != nil:
		return DeadLetter{}, fmt.Errorf("get dead letter %s: %w", key, err)
	}
	letter, err := deadLetterOf(e)
	if err != nil {
		return DeadLetter{}, fmt.Errorf("get dead letter %s: %w", key, err)
	}
	letter.ETag = e.ETag
	return letter, nil
}

// List reads one page of dead letters, newest failure first (standard, section 3). With filters by engine, status,
// tenant and time, or by correlation id, the cost depends on the page and not on the length of the table; with a
// filter by instance, on the dead letters of that instance in the period, as soon as Retention has indexed older
// rows. A filter by signature is applied by the store, over the index rows that the others select. The errors are
// ErrFilter, ErrToken and those of the store.
func (d *DeadLetters) List(ctx context.Context, f DeadLetterFilter) (DeadLetterPage, error) {
	q := d.query(f)
	rows, token, err := q.read(ctx, d.store, d.table, func(l listing, engine string) *rowStream {
		return l.indexStream(engine, correlationPrefix(f.CorrelationID))
	})
	if err != nil {
		return DeadLetterPage{}, fmt.Errorf("list dead letters: %w", err)
	}
	page := DeadLetterPage{Token: token}
	for _, row := range rows {
		letter, err := deadLetterOf(row.entity)
		if err != nil {
			return DeadLetterPage{}, fmt.Errorf("list dead letters: %w", err)
		}
		page.DeadLetters = append(page.DeadLetters, letter)
	}
	return page, nil
}

func (d *DeadLetters) query(f DeadLetterFilter) listQuery {
	var held func(e tables.Entity) bool
	if f.Unassigned { // old rows lack the column, so storage cannot filter by it
		held = func(e tables.Entity) bool { return e.String(assigneeColumn) != "" }
	}
	equal, also := map[string]string{"InstanceId": f.InstanceID, "CorrelationId": f.CorrelationID, "ErrorSignature": f.ErrorSignature}, ""
	switch {
	case f.Unassigned:
		also = "unassigned"
	case f.Assignee != "":
		equal[assigneeColumn] = f.Assignee
	}
	return listQuery{
		hidden:   held,
		also:     also,
		engines:  f.Engines,
		tenant:   f.TenantID,
		status:   string(f.Status),
		statuses: deadLetterStatuses(),
		equal:    equal,
		from:     f.From,
		to:       f.To,
		limit:    f.Limit,
		token:    f.Token,
		complete: d.instances.complete,
	}
}
