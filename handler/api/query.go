package api

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/vibedata/roundhouse/engine"
)

// query reads the parameters of a list and collects all errors in them.
type query struct {
	values   url.Values
	known    []string
	problems []problem
}

// hostParameters are for the host that forwards the request and for other versions of this API.
var hostParameters = []string{"code", "clientId", "api-version"}

// newQuery parses the query. Errors that do not depend on a parameter's meaning are reported immediately.
func newQuery(raw string, known ...string) *query {
	values, err := url.ParseQuery(raw)
	q := &query{values: values, known: known}
	if err != nil {
		q.problem("", "The query is not percent-encoded as it should be.")
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch value := values[name]; {
		case slices.Contains(hostParameters, name):
		case !slices.Contains(known, name):
			q.problem(name, "There is no such parameter. Use %s.", strings.Join(known, ", "))
		case len(value) > 1:
			q.problem(name, "Give the parameter once.")
		case value[0] == "":
			q.problem(name, "Give the parameter a value or leave it out.")
		}
	}
	return q
}

func (q *query) problem(target, format string, args ...any) {
	q.problems = append(q.problems, problem{codeInvalidParameter, fmt.Sprintf(format, args...), targetOf(target)})
}

// targetOf returns an external name for an answer.
func targetOf(name string) string {
	const longest = 64
	if len(name) > longest {
		name = name[:longest]
	}
	return strings.ToValidUTF8(name, "\uFFFD")
}

// err returns the answer to all errors, nil for none. The first of several leads.
func (q *query) err() error {
	switch len(q.problems) {
	case 0:
		return nil
	case 1:
		return &failure{status: http.StatusBadRequest, problem: q.problems[0]}
	default:
		return &failure{status: http.StatusBadRequest, problem: q.problems[0], details: q.problems}
	}
}

// text reads a parameter with any text of at most limit bytes.
func (q *query) text(name string, limit int) string {
	value := q.values.Get(name)
	if len(value) > limit || !utf8.ValidString(value) {
		q.problem(name, "Use at most %d bytes of UTF-8.", limit)
	}
	return value
}

// oneOf reads a parameter with a list of values.
func (q *query) oneOf(name string, allowed ...string) string {
	value := q.values.Get(name)
	if value != "" && !slices.Contains(allowed, value) {
		q.problem(name, "Use one of %s.", strings.Join(allowed, ", "))
	}
	return value
}

// engines reads the engine parameter: the named engine, or all.
func (q *query) engines(all []string) []string {
	if one := q.oneOf("engine", all...); one != "" {
		return []string{one}
	}
	return all
}

// limit reads the length of the page, 0 when it is not given.
func (q *query) limit() int { return q.number("limit", engine.MaxLimit) }

// number reads a number from 1 to most, 0 when it is not given.
func (q *query) number(name string, most int) int {
	value := q.values.Get(name)
	if value == "" {
		return 0
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > most {
		q.problem(name, "Use a number from 1 to %d.", most)
		return 0
	}
	return n
}

// period reads fromDate and toDate.
func (q *query) period() (from, to time.Time) {
	from, to = q.date("fromDate"), q.date("toDate")
	if !from.IsZero() && !to.IsZero() && from.After(to) {
		q.problem("toDate", "Use a time that is not before fromDate.")
	}
	return from, to
}

// date reads an RFC 3339 time, or a date, which means its beginning in UTC. The + of an offset becomes a blank when
// the sender does not encode it.
func (q *query) date(name string) time.Time {
	value := q.values.Get(name)
	if value == "" {
		return time.Time{}
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		t, err := time.Parse(layout, strings.ReplaceAll(value, " ", "+"))
		if y := t.UTC().Year(); err == nil && y >= 1601 && y <= 9999 {
			return t
		}
	}
	q.problem(name, "Use a time such as 2026-11-21T10:47:52Z or a date such as 2026-11-21, of the years 1601 to 9999.")
	return time.Time{}
}
