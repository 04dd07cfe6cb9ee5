package pollers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/cli"
	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/poller/sqlsource"
)

// Maker proposes definitions. Lookup reads the environment.
type Maker struct {
	Lookup func(string) (string, bool)
}

var _ cli.PollerMaker = Maker{}

// definition is a proposed poller in the settings.
type definition struct {
	Connection struct {
		Setting string `json:"setting"`
	} `json:"connection"`
	Source  sqlsource.Config `json:"source"`
	Deliver struct {
		Engine *engineTarget `json:"engine,omitempty"`
		Outbox *outboxTarget `json:"outbox,omitempty"`
	} `json:"deliver"`
}

type engineTarget struct {
	Engine         string `json:"engine"`
	Operation      string `json:"operation,omitempty"`
	InstanceColumn string `json:"instanceColumn,omitempty"`
	Tenant         string `json:"tenantId,omitempty"`
	TenantColumn   string `json:"tenantColumn,omitempty"`
}

type outboxTarget struct {
	EventType    string `json:"eventType"`
	Tenant       string `json:"tenantId,omitempty"`
	TenantColumn string `json:"tenantColumn,omitempty"`
}

// Propose inspects a table of the database.
func (m Maker) Propose(ctx context.Context, q cli.PollerQuestion) (cli.PollerProposal, error) {
	out := cli.PollerProposal{Poller: q.Name}
	if q.Name == "" {
		out.Poller = nameOf(q.Table)
	}
	d := definition{}
	d.Connection.Setting = q.Setting
	if q.Engine != "" {
		d.Deliver.Engine = &engineTarget{q.Engine, q.Operation, q.InstanceColumn, q.Tenant, q.TenantColumn}
	}
	if q.EventType != "" {
		d.Deliver.Outbox = &outboxTarget{q.EventType, q.Tenant, q.TenantColumn}
	}
	// Errors in the flags are reported before the database is queried.
	d.Source = sqlsource.Config{Dialect: q.Dialect, Table: q.Table}
	if _, err := d.encode(out.Poller); err != nil {
		return out, err
	}
	dsn, err := m.dsn(q)
	if err != nil {
		return out, err
	}
	p, err := sqlsource.Propose(ctx, sqlsource.Question{Dialect: q.Dialect, DSN: dsn, Table: q.Table, SourceID: q.SourceID, Cursor: q.Cursor, Keys: q.Keys, Timeout: q.Timeout})
	if err != nil {
		return out, coded(err)
	}
	out.Reasons, out.Advice, out.Ready, out.Problem = p.Reasons, p.Advice, p.Ready, p.Problem
	for _, r := range p.Missing {
		out.Missing = append(out.Missing, cli.PollerRemedy(r))
	}
	d.Source = p.Config
	out.Definition, err = d.encode(out.Poller)
	return out, err
}

// encode returns the definition as an object with the poller, and refuses one that the app would not accept.
func (d definition) encode(name string) (json.RawMessage, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(map[string]definition{name: d}); err != nil {
		return nil, err
	}
	_, err := poller.ParseSettings(text.String())
	return text.Bytes(), cli.Mark(cli.ErrUsage, err)
}

// dsn returns the connection string from the environment or else from the file of settings.
func (m Maker) dsn(q cli.PollerQuestion) (string, error) {
	if dsn, _ := m.Lookup(q.Setting); dsn != "" {
		return dsn, nil
	}
	values, err := readValues(q.File)
	if err == nil && values[q.Setting] == "" {
		err = errors.New("it is not there, either")
	}
	if err != nil {
		return "", cli.Mark(cli.ErrUsage, fmt.Errorf("setting %s, which holds the connection string, is not in the environment, and %s: %w", q.Setting, q.File, err))
	}
	return values[q.Setting], nil
}

// Write adds the definition to those of a file.
func (m Maker) Write(file string, p cli.PollerProposal) error {
	values, err := readValues(file)
	if err != nil {
		return cli.Mark(cli.ErrUsage, err)
	}
	all, added := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if text := values[Setting]; strings.TrimSpace(text) != "" {
		if err := json.Unmarshal([]byte(text), &all); err != nil {
			return cli.Mark(cli.ErrUsage, fmt.Errorf("%s of %s is no JSON object: mend it first: %w", Setting, file, err))
		}
	}
	if err := json.Unmarshal(p.Definition, &added); err != nil {
		return err
	}
	for name, text := range added {
		if _, there := all[name]; there {
			return cli.Mark(cli.ErrRefused, fmt.Errorf("%s of %s has a poller %s already: give another --name, or take that one out", Setting, file, name))
		}
		all[name] = text
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(all); err != nil {
		return err
	}
	if _, err := poller.ParseSettings(text.String()); err != nil {
		return cli.Mark(cli.ErrUsage, fmt.Errorf("%s of %s: %w", Setting, file, err))
	}
	return writeValue(file, Setting, strings.TrimSpace(text.String()))
}

var notInName = regexp.MustCompile(`[^a-z0-9]+`)

// nameOf derives the name of a poller from that of a table.
func nameOf(table string) string {
	parts := strings.Split(table, ".")
	name := strings.Trim(notInName.ReplaceAllString(strings.ToLower(parts[len(parts)-1]), "-"), "-")
	return strings.TrimRight(name[:min(len(name), 63)], "-")
}
