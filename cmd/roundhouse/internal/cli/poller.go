package cli

import (
	"context"
	"encoding/json"
	"errors"
	"os"

	"github.com/spf13/cobra"
)

// errNoPollers is the error of a program without pollers.
var errNoPollers = errors.New("this build has no pollers: use that of the app's version")

func (a *app) pollerCommands() *cobra.Command {
	list := a.command(spec{use: "list", short: "List the pollers that are defined or have a state", run: a.listPollers})
	show := a.command(spec{use: "show POLLER", short: "Show the state: checkpoint, lease, failure", args: cobra.ExactArgs(1), run: func(ctx context.Context, args []string) error {
		return a.withPollers(ctx, func(ctx context.Context, p Pollers) error {
			state, err := p.Show(ctx, args[0])
			if err != nil {
				return err
			}
			return a.detail(state)
		})
	}})
	lag := a.command(spec{use: "lag POLLER", short: "Show how far it is behind its table", args: cobra.ExactArgs(1), run: func(ctx context.Context, args []string) error {
		return a.withPollers(ctx, func(ctx context.Context, p Pollers) error {
			found, err := p.Lag(ctx, args[0])
			if err != nil {
				return err
			}
			return a.detail(found)
		})
	}})
	return group("poller", "Database pollers",
		`Show the states of database pollers, and change them, straight in storage. A
change frees the lease and fences its owner: what that had not committed is
delivered again. The audit log has every change, and every refused one.`,
		append([]*cobra.Command{list, show, lag, a.pollerNewCommand(), a.pollerExplainCommand(), a.pollerPlanCommand()}, a.pollerChangeCommands()...)...)
}

// withPollers opens the pollers' states.
func (a *app) withPollers(ctx context.Context, do func(context.Context, Pollers) error) error {
	if a.Pollers == nil {
		return errNoPollers
	}
	s, err := a.stores()
	if err != nil {
		return err
	}
	p, err := a.Pollers(s)
	if err != nil {
		return err
	}
	ctx, cancel := a.bounded(ctx)
	defer cancel()
	return do(ctx, p)
}

// detail shows a value of this program.
func (a *app) detail(v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return a.printDetail(data)
}

// pollerRow is a poller in the list.
type pollerRow struct {
	Poller string `json:"poller"`
	PollerState
	Error string `json:"error,omitempty"`
}

func (a *app) listPollers(ctx context.Context, _ []string) error {
	return a.withPollers(ctx, func(ctx context.Context, p Pollers) error {
		rows, err := pollerRows(ctx, p)
		if err != nil {
			return err
		}
		if a.asJSON() {
			return a.printValue(map[string]any{"items": rows})
		}
		if len(rows) == 0 {
			a.note("There are no pollers here: ROUNDHOUSE_POLLERS defines none, and there are no states.")
			return nil
		}
		return a.table(func(width int) error { return writeTable(a.Stdout, width, pollerColumns(), rows) })
	})
}

// pollerRows returns all pollers, unreadable ones with their errors. An empty list is no error.
func pollerRows(ctx context.Context, p Pollers) ([]pollerRow, error) {
	names, err := p.List(ctx)
	rows := []pollerRow{}
	for _, name := range names {
		row := pollerRow{Poller: name}
		var unread error
		if row.PollerState, unread = p.Show(ctx, name); unread != nil {
			row.Document = nil
			if !errors.Is(unread, ErrMissing) {
				row.Error = unread.Error()
			}
		}
		rows = append(rows, row)
	}
	return rows, err
}

func pollerColumns() []column[pollerRow] {
	return []column[pollerRow]{
		{title: "POLLER", text: func(r pollerRow) string { return r.Poller }},
		{title: "STATE", text: func(r pollerRow) string { return r.Condition }},
		{title: "PLACE", text: func(r pollerRow) string { return stateOf(r.Document).Checkpoint.Cursor.String() }, cut: true},
		{title: "COMMITTED", text: func(r pollerRow) string { return stateOf(r.Document).Checkpoint.UpdatedAt }, cut: true},
		{title: "OWNER", text: func(r pollerRow) string { return stateOf(r.Document).Lease.Owner }, cut: true},
		{title: "ERROR", text: func(r pollerRow) string { return r.Error + r.Problem }, cut: true},
	}
}

// pollerFile reads the file of a checkpoint.
func pollerFile(name string) ([]byte, error) {
	data, err := os.ReadFile(name)
	return data, Mark(ErrUsage, err)
}
