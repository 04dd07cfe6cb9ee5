package pollers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/cli"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/poller/sink"
	"github.com/vibedata/roundhouse/poller/sqlsource"
	"github.com/vibedata/roundhouse/tables"
)

// newest bounds the dead letters that are searched for a key.
const newest = 100

// Explain explains why a row was delivered or not, with its dead letters.
func (s *states) Explain(ctx context.Context, name, key string) (cli.PollerExplanation, error) {
	e, err := s.admin.Explain(ctx, name, key)
	if err != nil {
		return cli.PollerExplanation{}, coded(err)
	}
	out := cli.PollerExplanation{Poller: name, Key: e.Row.Key, Verdict: string(e.Verdict), Why: e.Why, Place: e.Place.String(), End: ended(e.End),
		Condition: string(e.Condition), Problem: e.Problem, EventID: e.EventID, DeadLetters: []cli.PollerLetter{}}
	if e.EventID == "" {
		return out, nil
	}
	out.Cursor, out.CorrelationID = e.Row.Cursor.String(), sink.CorrelationID(name, e.EventID)
	if out.DeadLetters, err = s.lettersOf(ctx, name, e.EventID, e.Row.Key); errors.Is(err, tables.ErrNotFound) { // the app has never run
		return out, nil
	}
	return out, err
}

// lettersOf returns the dead letters of a row: those of this version, and those of other versions among the newest
// pending ones.
func (s *states) lettersOf(ctx context.Context, name, eventID string, key json.RawMessage) ([]cli.PollerLetter, error) {
	letters := []cli.PollerLetter{}
	same, err := s.letters.Of(ctx, sink.EngineName(name), eventID)
	if err != nil {
		return letters, err
	}
	for _, l := range same {
		letters = append(letters, cli.PollerLetter{RowKey: l.RowKey, Status: string(l.Status), Same: true})
	}
	page, err := s.letters.List(ctx, engine.DeadLetterFilter{Engines: []string{sink.EngineName(name)}, Status: engine.StatusPending, Limit: newest})
	if err != nil {
		return letters, err
	}
	for _, listed := range page.DeadLetters {
		l, err := s.letters.Get(ctx, listed.Engine, listed.RowKey)
		if errors.Is(err, engine.ErrNotFound) { // it has just been deleted
			continue
		}
		if err != nil {
			return letters, fmt.Errorf("read dead letter %s: %w", listed.RowKey, err)
		}
		var event sink.Event
		// An encrypted letter, or one of another row, is not of this key.
		if json.Unmarshal(l.OriginalMessage, &event) == nil && event.ID != eventID && bytes.Equal(compact(event.Key), compact(key)) {
			letters = append(letters, cli.PollerLetter{RowKey: l.RowKey, Status: string(l.Status)})
		}
	}
	return letters, nil
}

func compact(text json.RawMessage) []byte {
	var out bytes.Buffer
	if json.Compact(&out, text) != nil {
		return text
	}
	return out.Bytes()
}

// ended returns the end of a backfill, "" for a poller without a backfill.
func ended(end *poller.Cursor) string {
	if end == nil {
		return ""
	}
	return end.String()
}

// Plan describes the next fetch.
func (s *states) Plan(ctx context.Context, name string, count int, values bool) (cli.PollerPlan, error) {
	p, err := s.admin.Plan(ctx, name, sqlsource.PlanOptions{Count: count, Values: values})
	if err != nil {
		return cli.PollerPlan{}, coded(err)
	}
	out := cli.PollerPlan{Poller: name, Place: p.Place.String(), End: ended(p.End), Delivered: p.Delivered, Estimated: p.Estimated, Due: cli.PollerCount(p.Due), Waiting: cli.PollerCount(p.Waiting),
		HeldBack: p.HeldBack, Order: p.Order, Index: p.Index, Missing: p.Missing, Statement: p.Statement, Parameters: []cli.PollerParameter{}, Explain: p.Explain}
	for _, parameter := range p.Parameters {
		out.Parameters = append(out.Parameters, cli.PollerParameter(parameter))
	}
	return out, nil
}
