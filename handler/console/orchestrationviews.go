package console

import (
	"net/url"
	"slices"
	"strings"
	"time"
)

// sinceValues are the relative times that a filter may name, so that an address keeps its meaning.
func sinceValues() map[string]func(now time.Time) time.Time {
	return map[string]func(time.Time) time.Time{
		"hour":  func(now time.Time) time.Time { return now.Add(-time.Hour) },
		"today": func(now time.Time) time.Time { return now.UTC().Truncate(24 * time.Hour) },
		"week":  func(now time.Time) time.Time { return now.AddDate(0, 0, -7) },
	}
}

// absolute returns a filter in the API's form: a relative time becomes a time, unless the filter has one.
func (f orchestrationFilter) absolute(now time.Time) url.Values {
	values := url.Values{}
	for name, all := range f.values {
		values[name] = all
	}
	since, known := sinceValues()[values.Get("since")]
	values.Del("since")
	if known && values.Get("fromDate") == "" {
		values.Set("fromDate", since(now).UTC().Format(time.RFC3339))
	}
	return values
}

// listView is a filter with a name.
type listView struct {
	Name, Link string
	// Current means that it is the displayed one.
	Current bool
}

// Views returns the most frequent filters. Those that wait for a user are among the tasks.
func (p orchestrationsPage) Views() (views []listView) {
	for _, v := range []struct {
		name   string
		values url.Values
	}{
		{"All", url.Values{}}, {"Running", url.Values{"status": {"Running"}}}, {"Stalled", url.Values{"status": {"Stalled"}}},
		{"Failed, begun today", url.Values{"status": {"Failed"}, "since": {"today"}}}, {"Last hour", url.Values{"since": {"hour"}}},
	} {
		views = append(views, listView{v.name, p.address(v.values), v.values.Encode() == p.Filter.values.Encode()})
	}
	return append(views, listView{Name: "Waiting for a person", Link: address(tasksPath, url.Values{"view": {"all"}})})
}

// column is a column of the list; Shown means that it is displayed, and Link is the address that toggles it.
type column struct {
	Key, Name string
	Shown     bool
	Link      string
}

// allColumns returns the possible columns of the list besides the id.
func allColumns() []column {
	return []column{{Key: "orchestrator", Name: "Orchestrator"}, {Key: "status", Name: "Status"}, {Key: "waits", Name: "Waits for"}, {Key: "created", Name: "Created"},
		{Key: "changed", Name: "Changed"}, {Key: "ended", Name: "Ended"}, {Key: "tag", Name: "Business reference"}, {Key: "work", Name: "Work"}}
}

// usualColumns are the default columns of the list.
const usualColumns = "orchestrator,status,waits,created,changed,work"

// columnsOf returns the columns in an address, in the order of the list; the default ones without any known column.
func columnsOf(text string) (keys []string) {
	asked := strings.Split(text, ",")
	for _, c := range allColumns() {
		if slices.Contains(asked, c.Key) {
			keys = append(keys, c.Key)
		}
	}
	if len(keys) == 0 {
		return strings.Split(usualColumns, ",")
	}
	return keys
}

// Shows reports whether the list has a column.
func (p orchestrationsPage) Shows(key string) bool { return slices.Contains(p.columns, key) }

// ColumnsParam returns the columns in the form of the address, "" for the default ones.
func (p orchestrationsPage) ColumnsParam() string {
	if text := strings.Join(p.columns, ","); text != usualColumns {
		return text
	}
	return ""
}

// Columns returns all columns, each with the address that toggles it. The last displayed one cannot be hidden.
func (p orchestrationsPage) Columns() (all []column) {
	for _, c := range allColumns() {
		other := p
		if c.Shown = p.Shows(c.Key); c.Shown {
			other.columns = slices.DeleteFunc(slices.Clone(p.columns), func(key string) bool { return key == c.Key })
		} else {
			other.columns = columnsOf(strings.Join(append(slices.Clone(p.columns), c.Key), ","))
		}
		if len(other.columns) > 0 {
			c.Link = other.address(p.Filter.values)
		}
		all = append(all, c)
	}
	return all
}

// address returns that of the list with a filter and these columns.
func (p orchestrationsPage) address(values url.Values) string {
	query := url.Values{"columns": {p.ColumnsParam()}}
	for name, all := range values {
		query[name] = all
	}
	return address(orchestrationsPath, query)
}
