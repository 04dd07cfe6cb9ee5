package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/client"
)

const (
	// defaultLimit is the default length of a list, pageLimit the longest page of the API.
	defaultLimit = 50
	pageLimit    = 100
)

// filter is a flag for a parameter of a list, or a member of a selection.
type filter struct {
	flag, param, usage string
	// values are the possible values; nil for any.
	values []string
	// time means that the value is a time, or an age.
	time bool
}

// The filters of several lists.
func byEngine() filter {
	return filter{flag: "engine", param: "engine", usage: "only those of this `engine`"}
}
func byInstance() filter {
	return filter{flag: "instance", param: "instanceId", usage: "only those of this managed `instance`"}
}
func byCorrelation() filter {
	return filter{flag: "correlation-id", param: "correlationId", usage: "only those of the run with this `id`"}
}
func byStatus(values ...string) filter {
	return filter{flag: "status", param: "status", usage: "only those with this `status`: " + strings.Join(values, ", "), values: values}
}
func bySignature() filter {
	return filter{flag: "signature", param: "errorSignature", usage: "only those with this error `signature` (see dlq groups)"}
}
func byTenant() filter {
	return filter{flag: "tenant", param: "tenant", usage: "only those of this `tenant`"}
}
func period() []filter {
	return []filter{
		{flag: "from", param: "fromDate", usage: "only from this `time` on: 2026-11-21, 2026-11-21T10:00:00Z, today, yesterday, or 2h for two hours ago", time: true},
		{flag: "to", param: "toDate", usage: "only before this `time`", time: true},
	}
}

// selection holds the values of filters.
type selection struct {
	filters []filter
	values  []string
	now     func() time.Time
}

// selected adds the flags of filters to a command.
func (a *app) selected(c *cobra.Command, filters ...filter) *selection {
	s := &selection{filters: filters, values: make([]string, len(filters)), now: a.Now}
	for i, f := range filters {
		c.Flags().StringVar(&s.values[i], f.flag, "", f.usage)
		// It can only fail for an undefined flag.
		_ = c.RegisterFlagCompletionFunc(f.flag, cobra.FixedCompletions(f.values, cobra.ShellCompDirectiveNoFileComp))
	}
	return s
}

// given returns the parameters with a value.
func (s *selection) given() (url.Values, error) {
	given := url.Values{}
	for i, f := range s.filters {
		value := s.values[i]
		if value == "" {
			continue
		}
		if f.values != nil {
			known := slices.IndexFunc(f.values, func(v string) bool { return strings.EqualFold(v, value) })
			if known < 0 {
				return nil, Mark(ErrUsage, fmt.Errorf("--%s %.64q: use one of %s", f.flag, value, strings.Join(f.values, ", ")))
			}
			value = f.values[known]
		}
		if f.time {
			t, err := parseTime(value, s.now())
			if err != nil {
				return nil, Mark(ErrUsage, fmt.Errorf("--%s %.64q: %w", f.flag, value, err))
			}
			value = t.UTC().Format(time.RFC3339Nano)
		}
		given.Set(f.param, value)
	}
	return given, nil
}

// members returns the parameters as members of a body.
func members(given url.Values) map[string]any {
	body := map[string]any{}
	for name := range given {
		body[name] = given.Get(name)
	}
	return body
}

// listing is a command that shows a list over all its pages.
type listing[T any] struct {
	spec
	path    []string
	filters []filter
	columns []column[T]
	// none is the text for an empty list, size the parameter of the page length: limit unless set.
	none, size string
	// open opens the API client; nil means the one for its address.
	open opener
}

// listCommand makes the command.
func listCommand[T any](a *app, l listing[T]) *cobra.Command {
	var limit int
	var token string
	var chosen *selection
	l.run = func(ctx context.Context, _ []string) error {
		query, err := chosen.given()
		if err != nil {
			return err
		}
		if token != "" {
			query.Set("continuationToken", token)
		}
		if l.open == nil {
			l.open = a.api
		}
		if l.size == "" {
			l.size = "limit"
		}
		c, err := l.open(ctx)
		if err != nil {
			return err
		}
		page, err := a.pages(ctx, c, query, limit, l.size, l.path...)
		if err != nil {
			return err
		}
		return showPage(a, page, l.columns, l.none)
	}
	c := a.command(l.spec)
	chosen = a.selected(c, l.filters...)
	c.Flags().IntVar(&limit, "limit", defaultLimit, "show so many at most; 0 shows all")
	c.Flags().StringVar(&token, "continue", "", "go on where a list ended that gave this `token`")
	return c
}

// pages reads enough pages of a list.
func (a *app) pages(ctx context.Context, c *client.Client, query url.Values, limit int, size string, path ...string) (client.Page, error) {
	if limit < 0 {
		return client.Page{}, Mark(ErrUsage, fmt.Errorf("--limit %d: use 0 or more", limit))
	}
	all := client.Page{Items: []json.RawMessage{}}
	for {
		want := pageLimit
		if limit > 0 {
			want = min(want, limit-len(all.Items))
		}
		query.Set(size, strconv.Itoa(want))
		page, err := look[client.Page](ctx, a, c, query, path...)
		if err != nil {
			return all, err
		}
		all.Items, all.Token = append(all.Items, page.Items...), page.Token
		if page.Token == "" || limit > 0 && len(all.Items) >= limit {
			return all, nil
		}
		query.Set("continuationToken", page.Token)
	}
}

// showPage writes a page as a table, or as the API's JSON.
func showPage[T any](a *app, page client.Page, columns []column[T], none string) error {
	if a.asJSON() {
		return a.printValue(page)
	}
	rows := make([]T, len(page.Items))
	for i, item := range page.Items {
		if err := decodeInto(item, &rows[i]); err != nil {
			return err
		}
	}
	if len(rows) == 0 {
		a.note("%s", none)
		return nil
	}
	if err := a.table(func(width int) error { return writeTable(a.Stdout, width, columns, rows) }); err != nil {
		return err
	}
	if page.Token != "" {
		a.note("There are more: --limit 0 shows all, --continue %s goes on.", page.Token)
	}
	return nil
}

// table calls write with the width of the terminal.
func (a *app) table(write func(width int) error) error {
	if a.flags.wide {
		return write(0)
	}
	return write(a.screen.width)
}
