package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/client"
)

// whoamiCommand shows the caller's identity in the API.
func (a *app) whoamiCommand() *cobra.Command {
	return a.command(spec{
		use: "whoami", short: "Show who you are to the app, and what you may do",
		long: `Show who you are to the app at its address, with the key or the sign-in that
the other commands use: your id, your roles, and your permissions. With
--storage, as whom changes straight in storage are recorded.`,
		example: "  roundhouse whoami\n  roundhouse whoami --entra api://app/.default -o json",
		run: func(ctx context.Context, _ []string) error {
			data, err := a.raw(ctx, a.either, nil, "me")
			if err != nil {
				return err
			}
			if a.asJSON() {
				return a.printJSON(data)
			}
			var me client.Me
			if err := decodeInto(data, &me); err != nil {
				return err
			}
			return a.showMe(me)
		},
	})
}

func (a *app) showMe(me client.Me) error {
	scope := me.Scope
	if scope == "" {
		scope = "all tenants"
	}
	for _, line := range [][2]string{{"KIND", me.Kind}, {"ID", me.ID}, {"NAME", me.Name}, {"TENANT", me.TenantID}, {"SEES", scope}, {"ROLES", strings.Join(me.Roles, ", ")},
		{"APP ROLES", strings.Join(me.AppRoles, ", ")}, {"MAY", strings.Join(me.Permissions, "\n"+strings.Repeat(" ", whoWidth))}} {
		if line[1] == "" {
			continue
		}
		if _, err := fmt.Fprintln(a.Stdout, pad(line[0], whoWidth)+block(line[1])); err != nil {
			return err
		}
	}
	if me.GroupsMissing {
		a.note("Your token does not name your groups, because they are too many: ask for an app role.")
	}
	return nil
}

// whoWidth is the width of the names in whoami's output.
const whoWidth = 11

func auditFilters() []filter {
	return append([]filter{
		{flag: "target", param: "target", usage: "only what was done to this `thing`, such as orchestrations/hmac-5a1c"},
		{flag: "principal", param: "principal", usage: "only what this `id` did, such as function-key (see whoami)"},
	}, period()...)
}

func (a *app) auditCommands() *cobra.Command {
	list := listCommand(a, listing[client.AuditEntry]{
		spec: spec{use: "list [flags]", short: "List who did what, newest first"},
		path: []string{"audit"}, open: a.either, none: "There are no such entries.", filters: auditFilters(),
		columns: []column[client.AuditEntry]{
			{title: "AT (UTC)", text: func(e client.AuditEntry) string { return at(e.At) }},
			{title: "OUTCOME", text: func(e client.AuditEntry) string { return e.Outcome }},
			{title: "WHO", text: doer, cut: true},
			{title: "ACTION", text: func(e client.AuditEntry) string { return e.Action }, cut: true},
			{title: "TARGET", text: func(e client.AuditEntry) string { return e.Target }},
		},
	})
	return group("audit", "Who did what", "Show the audit log: who changed what, or was refused.", list, a.exportCommand())
}

// doer returns the actor of an entry, by name if it has one.
func doer(e client.AuditEntry) string {
	if e.Name != "" {
		return e.Name
	}
	return e.Principal
}

// exportCommand writes the whole list, one line for each entry, page by page: it can be long.
func (a *app) exportCommand() *cobra.Command {
	var chosen *selection
	c := a.command(spec{
		use: "export [flags]", short: "Write who did what as JSON lines, newest first",
		long: `Write all entries of the audit log that the filters mean, newest first, one JSON
object a line. Without --from, those of the two years before --to.`,
		example: "  roundhouse audit export --from 2026-10-01 --to 2026-11-01 > october.jsonl",
		run: func(ctx context.Context, _ []string) error {
			query, err := chosen.given()
			if err != nil {
				return err
			}
			c, err := a.either(ctx)
			if err != nil {
				return err
			}
			return a.export(ctx, c, query)
		},
	})
	chosen = a.selected(c, auditFilters()...)
	return c
}

func (a *app) export(ctx context.Context, c *client.Client, query url.Values) error {
	query.Set("limit", strconv.Itoa(pageLimit))
	for {
		page, err := look[client.Page](ctx, a, c, query, "audit")
		if err != nil {
			return err
		}
		var lines bytes.Buffer
		for _, item := range page.Items {
			var line bytes.Buffer
			if err := json.Compact(&line, item); err != nil {
				return fmt.Errorf("the answer is no JSON: %w", err)
			}
			lines.WriteString(escapeUnprintable(line.String()))
			lines.WriteByte('\n')
		}
		if _, err := a.Stdout.Write(lines.Bytes()); err != nil {
			return fmt.Errorf("write the entries: %w", err)
		}
		if page.Token == "" {
			return nil
		}
		query.Set("continuationToken", page.Token)
	}
}
