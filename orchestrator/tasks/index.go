package tasks

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/tables"
)

const (
	indexPartition = "tasks"
	markPrefix     = "m-"
	columnKeys     = "Keys"
	columnRank     = "Rank"
)

// The prefixes of the views of the index.
const (
	viewOpen         = "o-"
	viewAssignee     = "a-"
	viewRole         = "r-"
	viewOrchestrator = "e-"
	viewTenant       = "t-"
	viewEnded        = "c-"
)

// maxMicros sorts behind every due time.
const maxMicros = int64(math.MaxInt64)

// rank orders the states of a task.
func (t Task) rank() int64 {
	if t.End != nil {
		return math.MaxInt32
	}
	return int64(t.Seq)
}

// digest converts a text to a key part of bounded length.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:12])
}

func (r Ref) digest() string { return digest(r.Orchestration + "\n" + r.ID) }

func micros(at time.Time) string { return fmt.Sprintf("%019d", at.UnixMicro()) }

// sortKey orders views of open tasks: by due time, then by age.
func (t Task) sortKey() string {
	due := fmt.Sprintf("%019d", maxMicros)
	if !t.DueAt.IsZero() {
		due = micros(t.DueAt)
	}
	return due + "-" + micros(t.CreatedAt) + "-" + t.digest()
}

// viewPrefix returns the key prefix of a view for a name.
func viewPrefix(view, name string) string { return view + digest(strings.ToLower(name)) + "-" }

// indexKeys returns the keys under which lists find the task.
func (t Task) indexKeys() []string {
	if t.End != nil {
		return []string{viewEnded + fmt.Sprintf("%019d", maxMicros-t.End.At.UnixMicro()) + "-" + t.digest()}
	}
	place := t.sortKey()
	keys := []string{viewOpen + place, viewPrefix(viewOrchestrator, t.Orchestrator) + place, viewPrefix(viewTenant, t.TenantID) + place}
	if t.Assignee != "" {
		keys = append(keys, viewPrefix(viewAssignee, t.Assignee)+place)
	}
	for _, role := range t.Roles {
		keys = append(keys, viewPrefix(viewRole, role)+place)
	}
	return keys
}

// Sync updates the index to the task's state. It may be repeated, and does nothing when the index has a later state.
func (s *Service) Sync(ctx context.Context, t Task) error {
	var err error
	for range changeTries {
		if err = s.sync(ctx, t); !errors.Is(err, tables.ErrPrecondition) && !errors.Is(err, tables.ErrExists) && !errors.Is(err, tables.ErrNotFound) &&
			!errors.Is(err, tables.ErrOutcomeUnknown) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("index of task %s: %w", t.Ref, err)
	}
	return nil
}

func (s *Service) sync(ctx context.Context, t Task) error {
	mark := tables.Key{Partition: indexPartition, Row: markPrefix + t.digest()}
	keys := t.indexKeys()
	known, err := s.config.Tables.Get(ctx, s.config.Index, mark)
	switch {
	case errors.Is(err, tables.ErrNotFound):
		known = tables.Entity{}
	case err != nil:
		return err
	case known.Int(columnRank) >= t.rank():
		return nil
	}
	text, err := json.Marshal(keys)
	if err != nil {
		return err
	}
	row := tables.Entity{Key: mark, ETag: known.ETag, Properties: map[string]any{columnRank: t.rank(), columnKeys: string(text)}}
	ops := []tables.Op{tables.Insert(row)}
	if known.ETag != "" {
		ops[0] = tables.Replace(row)
	}
	written := map[string]bool{}
	for _, key := range keys {
		if !written[key] {
			ops = append(ops, tables.Upsert(t.indexRow(key)))
		}
		written[key] = true
	}
	for _, key := range listOf(known.String(columnKeys)) {
		if !written[key] {
			ops = append(ops, tables.Delete(tables.Key{Partition: indexPartition, Row: key}, ""))
		}
		written[key] = true
	}
	return s.config.Tables.Apply(ctx, s.config.Index, ops...)
}

// indexRow returns a row of the index, with the fields that a list shows.
func (t Task) indexRow(key string) tables.Entity {
	p := map[string]any{"Orchestration": t.Orchestration, "TaskId": t.ID, "Name": t.Name, "Orchestrator": t.Orchestrator,
		"CorrelationId": t.CorrelationID, "TenantId": t.TenantID, "Status": string(t.Status), "Roles": textOf(t.Roles), "Assignee": t.Assignee, "AssigneeName": t.AssigneeName,
		"CreatedAtUtc": t.CreatedAt, "ChangedAtUtc": t.ChangedAt}
	if !t.DueAt.IsZero() {
		p["DueAtUtc"] = t.DueAt
	}
	if t.End != nil {
		p["EndedBy"], p["EndedByName"], p["EndedAtUtc"] = t.End.By, t.End.ByName, t.End.At
	}
	return tables.Entity{Key: tables.Key{Partition: indexPartition, Row: key}, Properties: p}
}

func taskOfIndexRow(e tables.Entity) Task {
	t := taskOf(Ref{e.String("Orchestration"), e.String("TaskId")}, e)
	t.Status, t.ETag = Status(e.String("Status")), ""
	if at := e.Time("EndedAtUtc"); !at.IsZero() {
		t.End = &End{Status: t.Status, By: e.String("EndedBy"), ByName: e.String("EndedByName"), At: at}
	}
	return t
}

// Forget removes a task from the index, because its orchestration is being purged.
func (s *Service) Forget(ctx context.Context, r Ref) error {
	for range changeTries {
		mark := tables.Key{Partition: indexPartition, Row: markPrefix + r.digest()}
		known, err := s.config.Tables.Get(ctx, s.config.Index, mark)
		if errors.Is(err, tables.ErrNotFound) {
			return nil
		}
		if err == nil {
			ops := []tables.Op{tables.Delete(mark, known.ETag)}
			for _, key := range listOf(known.String(columnKeys)) {
				ops = append(ops, tables.Delete(tables.Key{Partition: indexPartition, Row: key}, ""))
			}
			err = s.config.Tables.Apply(ctx, s.config.Index, ops...)
		}
		if err == nil {
			return nil
		}
		if !errors.Is(err, tables.ErrPrecondition) && !errors.Is(err, tables.ErrNotFound) && !errors.Is(err, tables.ErrOutcomeUnknown) {
			return fmt.Errorf("index of task %s: %w", r, err)
		}
	}
	return fmt.Errorf("index of task %s: %w", r, ErrChanged)
}
