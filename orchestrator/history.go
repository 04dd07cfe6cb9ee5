package orchestrator

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/internal/redact"
)

const (
	// historyFormat names the format of exported histories, and historyVersion is its version: it grows when readers
	// of the previous version cannot read it. Histories without either are of version 1.
	historyFormat  = "roundhouse-history"
	historyVersion = 1
	// maxHistoryEvents bounds the events of a history that OpenHistory opens.
	maxHistoryEvents = 100_000
)

// latestMicros is the latest time in a JSON document, the end of the year 9999, in microseconds of Unix time.
var latestMicros = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC).UnixMicro()

// exported is a history outside of storage.
type exported struct {
	Format        string           `json:"format,omitempty"`
	Version       int              `json:"version,omitempty"`
	ID            string           `json:"id"`
	CorrelationID string           `json:"correlationId"`
	Executions    []exportedRounds `json:"executions"`
}

type exportedRounds struct {
	Execution int     `json:"execution"`
	Rounds    []round `json:"rounds"`
}

// checkFormat rejects other formats, and versions newer than this program.
func checkFormat(format string, version int) error {
	if format != "" && format != historyFormat {
		return fmt.Errorf("exported history: its format is %.64q, not %s: %w", format, historyFormat, ErrCorrupt)
	}
	if version > historyVersion {
		return fmt.Errorf("exported history: version %d of its format is not known here: %w", version, ErrNewerSchema)
	}
	return nil
}

// ExportRedacted is Export for people. It removes secrets from payloads and texts, and the message that an engine
// stored with the start. Replay accepts the result, too: code that only passes a secret on decides the same with the
// replacement, code that inspects it may not.
func (r *Runtime) ExportRedacted(ctx context.Context, id string) ([]byte, error) {
	return r.export(ctx, id, redacted)
}

// redacted returns a round without secrets. It does not modify shared data.
func redacted(r round) round {
	return round{Learned: redactedEvents(r.Learned), Decided: redactedEvents(r.Decided), More: r.More}
}

func redactedEvents(all []event) []event {
	out := make([]event, len(all))
	for i, e := range all {
		if e.Kind == eventRaised {
			e.Name = redact.Text(e.Name) // from callers
		}
		e.Payload, e.Failure = redact.JSON(e.Payload), e.Failure.redacted()
		if e.Start != nil {
			s := *e.Start
			s.Carry = nil
			e.Start = &s
		}
		if e.Inherited != nil {
			h := *e.Inherited
			h.Unread = redactedEvents(h.Unread)
			e.Inherited = &h
		}
		out[i] = e
	}
	return out
}

// redacted returns an error without secrets, nil for none.
func (f *Failure) redacted() *Failure {
	if f == nil {
		return nil
	}
	out := *f
	out.Message, out.Stack, out.Detail = redact.Text(f.Message), redact.Text(f.Stack), redact.JSON(f.Detail)
	return &out
}

// History is an exported history that was opened for viewing.
type History struct {
	ID            string
	CorrelationID string
	// Outcome is the outcome of the last execution, with the others as Earlier.
	Outcome Outcome
	// Rounds are the rounds of all executions, in order.
	Rounds []Round
	// UpdatedAt is the time of the last entry.
	UpdatedAt time.Time
}

// OpenHistory reads the output of Export. The text may be untrusted: a text that is no history, or has more than
// 100,000 entries, is rejected. It runs no code of orchestrators. The errors are ErrCorrupt, and ErrNewerSchema for a
// later version of the format.
func OpenHistory(text []byte) (History, error) {
	r := historyReader{}
	h, err := r.read(text)
	if err != nil {
		return History{}, err
	}
	out := History{ID: h.ID, CorrelationID: h.CorrelationID}
	var all []storedExecution
	for _, e := range h.Executions {
		all = append(all, storedExecution{number: e.Execution, rounds: e.Rounds})
		for i, one := range e.Rounds {
			out.Rounds = append(out.Rounds, one.shown(e.Execution, i+1))
		}
	}
	out.Outcome, out.UpdatedAt = outcomeOf(h.ID, all), fromMicros(r.last)
	out.Outcome.CorrelationID = cmp.Or(out.Outcome.CorrelationID, h.CorrelationID)
	return out, nil
}

// Summary returns the history as an entry of a list, as far as its rounds hold the fields.
func (h History) Summary() Summary {
	o := h.Outcome
	s := Summary{ID: h.ID, Orchestrator: o.Orchestrator, Version: o.Version, CorrelationID: o.CorrelationID, TenantID: o.TenantID, Parent: o.Parent, Status: o.Status,
		Execution: o.Execution, StateVersion: int64(len(h.Rounds)), CreatedAt: o.StartedAt, UpdatedAt: h.UpdatedAt}
	if len(o.Earlier) > 0 {
		s.CreatedAt = o.Earlier[0].StartedAt
	}
	if o.Ended() {
		s.EndedAt = o.EndedAt
	}
	if o.Failure != nil {
		s.ErrorCode = o.Failure.Code
	}
	if o.Reference != nil {
		s.Tag = o.Reference.Key
	}
	return s
}

// historyReader reads a history piece by piece, which bounds the memory for a short text with many entries.
type historyReader struct {
	events int
	last   int64
}

func (r *historyReader) read(text []byte) (h exported, err error) {
	var compact bytes.Buffer
	if err := json.Compact(&compact, text); err != nil {
		return h, corruptHistory(err)
	}
	var outer struct {
		Format        string          `json:"format"`
		Version       int             `json:"version"`
		ID            string          `json:"id"`
		CorrelationID string          `json:"correlationId"`
		Executions    json.RawMessage `json:"executions"`
	}
	if err := json.Unmarshal(compact.Bytes(), &outer); err != nil {
		return h, corruptHistory(err)
	}
	if err := checkFormat(outer.Format, outer.Version); err != nil {
		return h, err
	}
	h.ID, h.CorrelationID = outer.ID, outer.CorrelationID
	err = elements(outer.Executions, func(raw json.RawMessage) error {
		e, err := r.execution(raw)
		if err == nil && len(h.Executions) > 0 && e.Execution <= h.Executions[len(h.Executions)-1].Execution {
			err = fmt.Errorf("execution %d is not in its place", e.Execution)
		}
		h.Executions = append(h.Executions, e)
		return err
	})
	if err == nil && (h.ID == "" || len(h.Executions) == 0) {
		err = fmt.Errorf("it has no id, or no execution")
	}
	if err != nil {
		return h, corruptHistory(err)
	}
	return h, nil
}

func corruptHistory(err error) error { return fmt.Errorf("exported history: %w: %w", ErrCorrupt, err) }

func (r *historyReader) execution(raw json.RawMessage) (e exportedRounds, err error) {
	var outer struct {
		Execution int             `json:"execution"`
		Rounds    json.RawMessage `json:"rounds"`
	}
	if err := json.Unmarshal(raw, &outer); err != nil {
		return e, err
	}
	e.Execution = outer.Execution
	err = elements(outer.Rounds, func(raw json.RawMessage) error {
		one, err := r.round(raw)
		e.Rounds = append(e.Rounds, one)
		return err
	})
	if _, ok := (storedExecution{rounds: e.Rounds}).start(); err == nil && (!ok || e.Execution < 1) {
		err = fmt.Errorf("execution %d does not begin with a start", e.Execution)
	}
	return e, err
}

func (r *historyReader) round(raw json.RawMessage) (out round, err error) {
	var outer struct {
		Learned json.RawMessage `json:"learned"`
		Decided json.RawMessage `json:"decided"`
		More    bool            `json:"more"`
	}
	if err := json.Unmarshal(raw, &outer); err != nil {
		return out, err
	}
	if err := r.count(1); err != nil {
		return out, err
	}
	out.More = outer.More
	if out.Learned, err = r.list(outer.Learned); err == nil {
		out.Decided, err = r.list(outer.Decided)
	}
	if err == nil {
		err = out.check()
	}
	return out, err
}

func (r *historyReader) list(raw json.RawMessage) (all []event, err error) {
	err = elements(raw, func(raw json.RawMessage) error {
		var first struct {
			Inherited json.RawMessage `json:"inherited"`
		}
		if err := json.Unmarshal(raw, &first); err != nil {
			return err
		}
		if err := r.count(1 + bytes.Count(first.Inherited, []byte{','})); err != nil {
			return err
		}
		var e event
		if err := json.Unmarshal(raw, &e); err != nil {
			return err
		}
		all = append(all, e)
		return r.times(e)
	})
	return all, err
}

// count counts entries and rounds; each takes memory, however short it is.
func (r *historyReader) count(n int) error {
	if r.events += n; r.events > maxHistoryEvents {
		return fmt.Errorf("it has more than %d entries", maxHistoryEvents)
	}
	return nil
}

// times rejects times that JSON cannot represent, and keeps the last one.
func (r *historyReader) times(e event) error {
	at := []int64{e.At, e.Due}
	if e.Origin != nil {
		at = append(at, e.Origin.ScheduledAt, e.Origin.EndedAt)
	}
	for _, us := range at {
		if us < 0 || us > latestMicros {
			return fmt.Errorf("the time %d is none", us)
		}
	}
	r.last = max(r.last, e.At)
	return nil
}

// elements passes the elements of an array to one, in order; null has none.
func elements(raw json.RawMessage, one func(json.RawMessage) error) error {
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if open, err := d.Token(); err != nil || open != json.Delim('[') {
		return fmt.Errorf("there is %.20q in place of a list", raw)
	}
	for d.More() {
		var element json.RawMessage
		if err := d.Decode(&element); err != nil {
			return err
		}
		if err := one(element); err != nil {
			return err
		}
	}
	return nil
}
