package api

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler/api/bulk"
)

// maxAge bounds olderThanDays.
const maxAge = 36_500

// letterSelection is the common part of operations on dead letters: the parameters of the list, for pending ones, and
// the rate.
type letterSelection struct {
	Engine         string `json:"engine"`
	InstanceID     string `json:"instanceId"`
	ErrorSignature string `json:"errorSignature"`
	FromDate       string `json:"fromDate"`
	ToDate         string `json:"toDate"`
	RatePerSecond  *int   `json:"ratePerSecond"`
	// Rows are dead letters by name, instead of all of the above but the rate.
	Rows []bulk.Row `json:"rows"`
}

type retrySelection struct {
	letterSelection
	Canary        *int `json:"canary"`
	CanarySeconds *int `json:"canarySeconds"`
}

type expireSelection struct {
	letterSelection
	OlderThanDays *int `json:"olderThanDays"`
}

// retryMany starts an operation that retries dead letters.
func (a *api) retryMany(ctx context.Context, r *request) (reply, error) {
	var s retrySelection
	if err := r.decode(&s); err != nil {
		return reply{}, err
	}
	q, req := selected(s.letterSelection, a.engines)
	req.Action = bulk.ActionRetry
	req.Canary = q.bounded("canary", s.Canary, 1, bulk.MaxCanary)
	req.CanarySeconds = q.bounded("canarySeconds", s.CanarySeconds, 1, bulk.MaxCanarySeconds)
	if s.Canary == nil && s.CanarySeconds != nil {
		q.problem("canarySeconds", "It belongs to a canary.")
	}
	if s.filter() == "" && s.Rows == nil {
		q.problem("engine", "Say which dead letters are meant, by one parameter at least.")
	}
	return a.operate(ctx, r, q, bulk.DeadLetterKind, req)
}

// expireMany starts an operation that expires dead letters whose last failure is so many days ago (standard, section
// 3).
func (a *api) expireMany(ctx context.Context, r *request) (reply, error) {
	var s expireSelection
	if err := r.decode(&s); err != nil {
		return reply{}, err
	}
	wanted := cmp.Or(s.Engine, a.engines[0])
	for _, row := range s.Rows {
		if !slices.Contains(a.engines, row.Engine) {
			wanted = row.Engine
		}
	}
	names, err := a.names(ctx, wanted)
	if err != nil {
		return reply{}, err
	}
	q, req := selected(s.letterSelection, names)
	req.Action = bulk.ActionExpire
	days := q.bounded("olderThanDays", s.OlderThanDays, 0, maxAge)
	switch {
	case s.Rows != nil && s.OlderThanDays != nil:
		q.problem("olderThanDays", "Use either rows or olderThanDays.")
	case s.Rows == nil && s.OlderThanDays == nil:
		q.problem("olderThanDays", "Say how old the dead letters are that are meant: there is no default for it.")
	}
	if req.OlderThanDays = days; days > 0 && s.ToDate != "" {
		q.problem("toDate", "Use either toDate or olderThanDays above 0.")
	}
	return a.operate(ctx, r, q, bulk.DeadLetterKind, req)
}

// selected reads a selection of dead letters of the named engines, as the list reads its parameters.
func selected(s letterSelection, names []string) (*query, bulk.Request) {
	q := &query{values: url.Values{
		"engine": {s.Engine}, "instanceId": {s.InstanceID}, "errorSignature": {s.ErrorSignature}, "fromDate": {s.FromDate}, "toDate": {s.ToDate},
	}}
	from, to := q.period()
	return q, bulk.Request{
		Engine: q.oneOf("engine", names...), InstanceID: q.text("instanceId", engine.MaxInstanceIDLength),
		ErrorSignature: q.text("errorSignature", maxSignature), From: from, To: to,
		RatePerSecond: q.bounded("ratePerSecond", s.RatePerSecond, 1, bulk.MaxRate), Rows: rowsOf(q, s, names),
	}
}

// filter returns the filter of a selection as text, "" for none.
func (s letterSelection) filter() string {
	return s.InstanceID + s.Engine + s.ErrorSignature + s.FromDate + s.ToDate
}

// rows reads dead letters by name, each once.
func rowsOf(q *query, s letterSelection, names []string) (rows []bulk.Row) {
	switch {
	case s.Rows == nil:
		return nil
	case s.filter() != "":
		q.problem("rows", "Use either rows or a filter.")
	case len(s.Rows) == 0 || len(s.Rows) > bulk.MaxRows:
		q.problem("rows", "Name 1 to %d dead letters.", bulk.MaxRows)
		return nil
	}
	for _, row := range s.Rows {
		if !slices.Contains(names, row.Engine) || row.RowKey == "" || len(row.RowKey) > engine.MaxInstanceIDLength || !utf8.ValidString(row.RowKey) {
			q.problem("rows", "Name each by its engine, one of %s, and its rowKey.", strings.Join(names, ", "))
			return nil
		}
		if !slices.Contains(rows, row) {
			rows = append(rows, row)
		}
	}
	return rows
}

// bounded returns a number of a body, 0 when it is not given.
func (q *query) bounded(name string, value *int, least, most int) int {
	if value == nil {
		return 0
	}
	if *value < least || *value > most {
		q.problem(name, "Use a number from %d to %d.", least, most)
		return 0
	}
	return *value
}

// idempotencyKey reads the header that identifies repeats of a request.
func (q *query) idempotencyKey(r *request) string {
	key := r.http.Header.Get("Idempotency-Key")
	if key != "" && !usableID.MatchString(key) {
		q.problem("Idempotency-Key", "Use 1 to 128 visible ASCII characters.")
	}
	return key
}
