package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vibedata/roundhouse/audit"
	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/internal/payload"
)

// pollerAction is a command that changes a state: its words, and the change from the arguments after the poller's
// name.
type pollerAction struct {
	kind               PollerChangeKind
	args, short, extra string
	least, most        int
	read               func(c *PollerChange, args []string) error
}

func pollerActions() []pollerAction {
	return []pollerAction{
		{kind: ResetToBeginning, short: "Deliver everything again", extra: "Everything in the table is delivered again, from its first row on."},
		{kind: ResetToCheckpoint, args: " FILE", short: "Go back, or on, to the checkpoint of a file", least: 1, most: 1,
			extra: "FILE is what poller show -o json prints, its document, or a checkpoint alone.",
			read: func(c *PollerChange, args []string) (err error) {
				c.File, err = pollerFile(args[0])
				return err
			}},
		{kind: ResetToCursor, args: " VALUE [PK]", short: "Go back, or on, to a place", least: 1, most: 2,
			extra: "VALUE is that of the cursor column, PK the key columns of its last row that is\nnot to be delivered, as a JSON object.", read: readCursor},
		{kind: CloneCheckpoint, args: " NEW", short: "Give a new poller the checkpoint of this one", least: 1, most: 1,
			extra: "The new poller begins where this one is, with a lease of its own.",
			read:  func(c *PollerChange, args []string) error { c.To = args[0]; return nil }},
		{kind: AcceptFingerprint, short: "Let the checkpoint stand for a changed definition",
			extra: "It is for changes that leave the order of the rows as it was: what another\nfilter or table would have given before the checkpoint is not delivered. The\n" +
				"definition is that of ROUNDHOUSE_POLLERS here."},
		{kind: BreakLease, short: "Take the lease from its owner", extra: "The owner is fenced: it cannot commit any more."},
		{kind: Retire, short: "Let a poller not run any more", extra: "Its state stays, with the fencing token. A reset brings the poller back."},
	}
}

func readCursor(c *PollerChange, args []string) error {
	c.Value = args[0]
	if len(args) == 1 {
		return nil
	}
	if err := payload.Check([]byte(args[1])); err != nil {
		return Mark(ErrUsage, fmt.Errorf("PK is %w", err))
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal([]byte(args[1]), &keys); err != nil || len(keys) == 0 {
		return Mark(ErrUsage, fmt.Errorf(`PK %.64q is no JSON object of the key columns, such as {"id":5}`, args[1]))
	}
	c.Keys = json.RawMessage(args[1])
	return nil
}

func (a *app) pollerChangeCommands() []*cobra.Command {
	var commands []*cobra.Command
	for _, action := range pollerActions() {
		commands = append(commands, a.pollerChangeCommand(action))
	}
	return commands
}

func (a *app) pollerChangeCommand(action pollerAction) *cobra.Command {
	var g guards
	var change PollerChange
	c := a.command(spec{
		use: string(action.kind) + " POLLER" + action.args + " [flags]", short: action.short,
		long: action.short + ".\n" + action.extra,
		args: cobra.RangeArgs(1+action.least, 1+action.most),
		run: func(ctx context.Context, args []string) error {
			change.Kind = action.kind
			if action.read != nil {
				if err := action.read(&change, args[1:]); err != nil {
					return err
				}
			}
			return a.withPollers(ctx, func(_ context.Context, p Pollers) error {
				// The confirmation may take any time.
				return a.changePoller(ctx, p, g, args[0], change)
			})
		},
	})
	g.register(c.Flags())
	c.Flags().BoolVar(&change.Force, "force", false, "go on under a live lease, which fences its owner; and take a file of another poller or definition")
	if action.kind == ResetToCursor {
		c.Flags().StringVar(&change.CursorKind, "kind", "", "the `kind` of the cursor; that of the checkpoint unless given")
	}
	return c
}

// changePoller shows the effect of a change, and makes the change when it is confirmed. The audit log records it
// first.
func (a *app) changePoller(ctx context.Context, p Pollers, g guards, name string, c PollerChange) error {
	c.DryRun = true
	would, err := a.tryChange(ctx, p, name, c)
	if err != nil {
		if a.dryRun(g, true) || errors.Is(err, ErrUnreachable) {
			return err
		}
		return errors.Join(err, a.refused(ctx, a.pollerEntry(name, c, would), err))
	}
	d := danger{what: fmt.Sprintf("%s the poller %s", c.Kind, name), name: name, effect: differences(would), storage: true}
	return a.guarded(ctx, g, d, func(ctx context.Context) error {
		c.DryRun = false
		var done PollerEffect
		s, err := a.stores()
		if err != nil {
			return err
		}
		err = a.recorded(ctx, s, a.pollerEntry(name, c, would), func() (string, error) {
			var err error
			done, err = a.tryChange(ctx, p, name, c)
			return shortly(done.After), err
		})
		if err != nil {
			return err
		}
		return a.detail(done)
	})
}

// pollerEntry returns the audit entry of a poller's change.
func (a *app) pollerEntry(name string, c PollerChange, would PollerEffect) audit.Entry {
	action := []string{string(c.Kind)}
	if place := strings.TrimSpace(c.Value + " " + string(c.Keys)); c.To+place != "" {
		action = append(action, "to", c.To+place)
	}
	if c.Force {
		action = append(action, "by force")
	}
	return audit.Entry{Permission: string(access.PollersChange), Action: strings.Join(action, " "), Target: "pollers/" + name, Before: shortly(would.Before)}
}

// shortly returns a short form of a state document for the audit log.
func shortly(document json.RawMessage) string {
	if len(document) == 0 {
		return "none"
	}
	d := stateOf(document)
	return fmt.Sprintf("at %s, token %d, owner %q, definition %.24s", d.Checkpoint.Cursor, d.Lease.Token, d.Lease.Owner, orNone(d.Fingerprint))
}

func (a *app) tryChange(ctx context.Context, p Pollers, name string, c PollerChange) (PollerEffect, error) {
	ctx, cancel := a.bounded(ctx)
	defer cancel()
	return p.Change(ctx, name, c)
}

// differences returns the changed members, before and after.
func differences(e PollerEffect) []string {
	before, after := stateOf(e.Before), stateOf(e.After)
	fenced := ""
	if e.Fenced {
		fenced = ", which is running now and loses its lease"
	}
	return []string{
		fmt.Sprintf("before: at %s, token %d, owner %q%s", before.Checkpoint.Cursor, before.Lease.Token, before.Lease.Owner, fenced),
		fmt.Sprintf("after:  at %s, token %d, owner %q", after.Checkpoint.Cursor, after.Lease.Token, after.Lease.Owner),
		fmt.Sprintf("definition: before %.24s, after %.24s", orNone(before.Fingerprint), orNone(after.Fingerprint)),
	}
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

// pollerDocument holds the fields of a state document that the commands show.
type pollerDocument struct {
	Fingerprint string `json:"source_fingerprint"`
	Retired     bool   `json:"retired"`
	Checkpoint  struct {
		Cursor    place  `json:"cursor"`
		UpdatedAt string `json:"updated_at"`
	} `json:"checkpoint"`
	Lease struct {
		Owner string `json:"owner_id"`
		Token int64  `json:"fencing_token"`
	} `json:"lease"`
}

// stateOf returns an empty value for no document, and for an unreadable one.
func stateOf(document json.RawMessage) (d pollerDocument) {
	if json.Unmarshal(document, &d) != nil {
		return pollerDocument{}
	}
	return d
}

// place is a cursor for display.
type place struct {
	Value json.RawMessage `json:"value"`
	Keys  json.RawMessage `json:"tiebreaker"`
}

// String returns the place, with the keys if they matter.
func (p place) String() string {
	switch {
	case len(p.Value) == 0:
		return "the beginning"
	case len(p.Keys) == 0 || string(p.Keys) == "null":
		return readable(p.Value)
	}
	var keys bytes.Buffer
	if json.Compact(&keys, p.Keys) != nil { // a document may have them over several lines
		return readable(p.Value)
	}
	return readable(p.Value) + " " + keys.String()
}
