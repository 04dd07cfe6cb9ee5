package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/internal/tenant"
	"github.com/vibedata/roundhouse/tables"
)

// Filter selects orchestrations; a zero field does not filter.
type Filter struct {
	// Prefix is the beginning of the id.
	Prefix        string
	Orchestrator  string
	CorrelationID string
	// Orchestrators are the names of the selected orchestrators; none means all.
	Orchestrators []string
	// TenantID is the tenant of the orchestration, compared without case. "" is the platform, which sees all.
	TenantID string
	// Statuses are the selected statuses; none means all.
	Statuses []Status
	// CreatedFrom <= creation < CreatedTo, and end < EndedBefore.
	CreatedFrom, CreatedTo time.Time
	EndedBefore            time.Time
	// Tag is the key of the business reference, CustomStatus a part of the custom status.
	Tag          string
	CustomStatus string
	// TopLevel leaves out sub-orchestrations.
	TopLevel bool
}

// Summary is an orchestration in a list: the contents of its status row.
type Summary struct {
	ID            string
	Orchestrator  string
	Version       string
	CorrelationID string
	// TenantID is the tenant of the orchestration, "" for the platform.
	TenantID  string
	Parent    string
	Status    Status
	Execution int
	// StateVersion counts its rounds.
	StateVersion int64
	CustomStatus string
	// WaitingKind, WaitingToken and WaitingUntil describe its wait.
	WaitingKind  string
	WaitingToken string
	WaitingUntil time.Time
	// WaitingWithin is set while it waits for activities that other processes run.
	WaitingWithin bool
	// Busy is set while calls other than events are open.
	Busy bool
	// Running is set while a process has to run one of its activities.
	Running   bool
	CreatedAt time.Time
	UpdatedAt time.Time
	EndedAt   time.Time // when its latest execution ended; zero while it runs
	// ErrorCode is the code of its last failure, its own or a learned one.
	ErrorCode string
	// Tag is the key of its business reference, "" for none.
	Tag string
}

// Ended reports whether the orchestration has ended, with success or not, so that nothing follows by itself.
func (s Summary) Ended() bool { return !s.EndedAt.IsZero() }

// maxList bounds a page of List.
const maxList = 1000

// List returns orchestrations in the order of their ids, up to limit (1 to 1,000), and a continuation for the
// following ones; "" at the end. A page is empty only at the end. An orchestration with an unreadable id is left out,
// and recorded as damaged (Damages). The query reads past every orchestration in the range of the prefix, with all
// rounds. Use a prefix to keep a list cheap: the ids of an engine begin with its name.
func (r *Runtime) List(ctx context.Context, f Filter, limit int, continuation string) ([]Summary, string, error) {
	if limit < 1 || limit > maxList {
		return nil, "", fmt.Errorf("list of orchestrations: a page has 1 to %d, not %d", maxList, limit)
	}
	if f.Prefix != "" && !validID(f.Prefix) {
		return nil, "", nil // no id has such a prefix
	}
	from := tables.EscapeKey(f.Prefix)
	scan := tables.Scan{Row: statusRow, FromPartition: from, ToPartition: tables.PrefixEnd(from), Continuation: continuation, Where: map[string]any{}}
	if f.Orchestrator != "" {
		scan.Where["Name"] = f.Orchestrator
	}
	if f.CorrelationID != "" {
		scan.Where["CorrelationId"] = f.CorrelationID
	}
	if len(f.Statuses) == 1 {
		scan.Where["RuntimeStatus"] = string(f.Statuses[0])
	}
	var found []Summary
	for {
		scan.Limit = limit - len(found)
		page, err := r.config.Tables.Scan(ctx, r.config.Table, scan)
		if errors.Is(err, tables.ErrInvalid) && continuation != "" {
			err = fmt.Errorf("%w: %w", ErrContinuation, err)
		}
		if err != nil {
			return nil, "", fmt.Errorf("list of orchestrations: %w", err)
		}
		for _, e := range page.Entities {
			s, err := summaryOf(e)
			if err != nil {
				r.noteUnnamedDamage(ctx, e.Partition, err)
				continue
			}
			if f.Matches(s) {
				found = append(found, s)
			}
		}
		if scan.Continuation = page.Next; page.Next == "" || len(found) == limit {
			return found, page.Next, nil
		}
	}
}

// Matches reports whether the filter selects this orchestration.
func (f Filter) Matches(s Summary) bool {
	same := func(want, got string) bool { return want == "" || want == got }
	switch {
	case s.Orchestrator == "": // it is being purged
		return false
	case !strings.HasPrefix(s.ID, f.Prefix), !same(f.Orchestrator, s.Orchestrator), !same(f.CorrelationID, s.CorrelationID), !same(f.Tag, s.Tag):
		return false
	case len(f.Orchestrators) > 0 && !slices.Contains(f.Orchestrators, s.Orchestrator):
		return false
	case !tenant.Sees(f.TenantID, s.TenantID):
		return false
	case !strings.Contains(s.CustomStatus, f.CustomStatus):
		return false
	case len(f.Statuses) > 0 && !slices.Contains(f.Statuses, s.Status), f.TopLevel && s.Parent != "":
		return false
	case s.CreatedAt.Before(f.CreatedFrom), !f.CreatedTo.IsZero() && !s.CreatedAt.Before(f.CreatedTo):
		return false
	default:
		return f.EndedBefore.IsZero() || !s.EndedAt.IsZero() && s.EndedAt.Before(f.EndedBefore)
	}
}

func summaryOf(e tables.Entity) (Summary, error) {
	id, err := tables.UnescapeKey(e.Partition)
	return Summary{ID: id, Orchestrator: e.String("Name"), Version: e.String("Version"), CorrelationID: e.String("CorrelationId"), TenantID: e.String("TenantId"),
		Parent: e.String("ParentId"), Status: Status(e.String("RuntimeStatus")), Execution: int(e.Int("Execution")),
		StateVersion: e.Int("StateVersion"), CustomStatus: e.String("CustomStatus"), WaitingKind: e.String("WaitingKind"),
		WaitingToken: e.String("WaitingToken"), WaitingUntil: e.Time("WaitingUntilUtc"), WaitingWithin: e.Bool("WaitingWithin"), Busy: e.Bool("Busy"), Running: e.Bool("Running"), CreatedAt: e.Time(columnCreated),
		UpdatedAt: e.Time("LastExecutedOnUtc"), EndedAt: e.Time("CompletedAtUtc"), ErrorCode: e.String("LastErrorCode"),
		Tag: tagOf(e.String("BusinessReference"))}, err
}

// tagOf returns the key of a business reference, "" for a text that is not one.
func tagOf(text string) string {
	var r Reference
	if text == "" || json.Unmarshal([]byte(text), &r) != nil {
		return ""
	}
	return r.Key
}

// Status returns the contents of an orchestration's status row, or ErrNotFound. It costs one transaction.
func (r *Runtime) Status(ctx context.Context, id string) (Summary, error) {
	s, _, err := r.statusState(ctx, id)
	return s, err
}

// stateColumn is the column of the status row that execution.state fills.
type stateColumn string

// statusState is Status, with the state column.
func (r *Runtime) statusState(ctx context.Context, id string) (Summary, stateColumn, error) {
	if !validID(id) {
		return Summary{}, "", fmt.Errorf("orchestration %.400q: %w", id, ErrNotFound)
	}
	e, err := r.config.Tables.Get(ctx, r.config.Table, tables.Key{Partition: tables.EscapeKey(id), Row: statusRow})
	if err != nil && !errors.Is(err, tables.ErrNotFound) {
		return Summary{}, "", fmt.Errorf("orchestration %s: %w", id, err)
	}
	s, bad := summaryOf(e)
	if err != nil || bad != nil || s.Orchestrator == "" {
		return Summary{}, "", fmt.Errorf("orchestration %s: %w", id, ErrNotFound)
	}
	return s, stateColumn(e.String("StateJson")), nil
}

// waitsFor reports whether the orchestration waits for the sub-orchestration, as far as the state shows that.
func (c stateColumn) waitsFor(child string) bool {
	var state struct {
		Frames []string `json:"subWorkflowFrames"`
	}
	if err := json.Unmarshal([]byte(c), &state); err != nil || len(state.Frames) >= shownInState {
		return true // the state does not show all of them, so it may be one
	}
	return slices.Contains(state.Frames, clipName(child))
}

// Purged is the result of a PurgeAll.
type Purged struct {
	// Orchestrations is the number of purged ones, without their sub-orchestrations. Active is the number of those
	// that have not ended and were left.
	Orchestrations, Active int
	// Damaged is the number of those that were left because they, or their sub-orchestrations, cannot be read. They
	// are damaged, or were written by a newer version of this program. Damages lists the damaged ones, for ForcePurge.
	Damaged int
	// Continuation is for the next call; "" at the end.
	Continuation string
}

// PurgeAll purges the ended orchestrations that a filter selects, at most limit (1 to 1,000) of them.
// Sub-orchestrations are purged with their callers, and by themselves only when no caller can call them again. After
// an error or a crash, repeat the call.
func (r *Runtime) PurgeAll(ctx context.Context, f Filter, limit int, continuation string) (Purged, error) {
	p := Purged{Continuation: continuation}
	if continuation == "" {
		unfinished := Purged{}
		if err := r.purgeUnfinished(ctx, f.Prefix, &unfinished); err != nil {
			return p, err
		}
		if f.TenantID == "" { // their tenants are no longer known
			p.Orchestrations, p.Damaged = unfinished.Orchestrations, unfinished.Damaged
		}
	}
	found, next, err := r.List(ctx, f, limit, continuation)
	if err != nil {
		return p, err
	}
	for _, s := range found {
		if s.Parent != "" {
			purged, err := r.purgeForgottenChild(ctx, s)
			if err != nil {
				return p, err
			}
			p.Orchestrations += purged
			continue
		}
		if !s.Ended() {
			p.Active++
			continue
		}
		switch err := r.Purge(ctx, s.ID); {
		case errors.Is(err, ErrActive):
			p.Active++
		case err == nil, errors.Is(err, ErrNotFound):
			p.Orchestrations++
		case errors.Is(err, ErrCorrupt), errors.Is(err, ErrNewerSchema):
			p.Damaged++
			r.noteDamage(ctx, err)
		default:
			return p, err
		}
	}
	p.Continuation = next
	return p, nil
}

// purgeUnfinished finishes purges that were interrupted, because no list shows their orchestrations.
func (r *Runtime) purgeUnfinished(ctx context.Context, prefix string, p *Purged) error {
	from := tables.EscapeKey(prefix)
	marks := tables.Scan{Row: purgeRow, FromPartition: from, ToPartition: tables.PrefixEnd(from)}
	for e, err := range tables.ScanAll(ctx, r.config.Tables, r.config.Table, marks) {
		if err != nil {
			return fmt.Errorf("unfinished purges: %w", err)
		}
		id, err := tables.UnescapeKey(e.Partition)
		if err != nil {
			p.Damaged++
			r.noteUnnamedDamage(ctx, e.Partition, err)
			continue
		}
		if err := r.purgeRest(ctx, id); err != nil {
			return fmt.Errorf("unfinished purges: %w", err)
		}
		p.Orchestrations++
	}
	return nil
}
