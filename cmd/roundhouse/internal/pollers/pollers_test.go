package pollers

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/vibedata/roundhouse/audit"
	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/cli"
	"github.com/vibedata/roundhouse/internal/azurite/azuritetest"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/poller"
)

var storage azuritetest.Shared

func TestMain(m *testing.M) { storage.Main(m) }

func must(t *testing.T, errs ...error) {
	t.Helper()
	testenv.OK(t, errors.Join(errs...))
}

// console is an operator's environment: a table of orders and a poller for it.
type console struct {
	settings map[string]string
	name     string
	blob     poller.Store
	audit    audit.Log
	account  azure.Account
}

const source = `{"dialect":"sqlite","sourceId":"shop","table":"orders","cursor":"id","keys":["id"]%s}`

func newConsole(t *testing.T) *console {
	t.Helper()
	account := storage.Account(t)
	path := filepath.Join(t.TempDir(), "shop.db")
	db, err := sql.Open("sqlite", path)
	must(t, err)
	_, err = db.ExecContext(t.Context(), "create table orders (id integer primary key, state text); insert into orders values (1,'a'),(2,'b'),(3,'c')")
	must(t, err, db.Close())
	b, err := azure.NewBlobs(account)
	must(t, err)
	store, err := azure.NewTables(account)
	must(t, err)
	d := &console{name: azuritetest.Name("orders"), blob: poller.BlobStore{Blobs: b}, audit: audit.Log{Tables: store}, account: account}
	d.settings = map[string]string{"AzureWebJobsStorage": account.ConnectionString(), "ORDERS": path}
	d.define("")
	must(t, d.blob.Create(t.Context()))
	d.write(t, d.name, "")
	return d
}

func (d *console) define(more string) {
	d.settings[Setting] = `{"` + d.name + `":{"connection":{"setting":"ORDERS"},"source":` + strings.Replace(source, "%s", more, 1) + `,"deliver":{"engine":{"engine":"update"}}}}`
}

// write writes a state at row 2, with a live lease if there is an owner.
func (d *console) write(t *testing.T, name, owner string) {
	t.Helper()
	doc := &poller.Document{Version: 1, PollerName: name, Fingerprint: "sha256:0", Definition: json.RawMessage(`{}`), Lease: poller.Lease{Token: 7},
		Checkpoint: &poller.Checkpoint{Cursor: poller.Cursor{Kind: "integer", Value: "2"}, UpdatedAt: time.Now().UTC()}}
	if owner != "" {
		doc.Lease.Owner, doc.Lease.Expires = owner, time.Now().Add(time.Hour)
	}
	text, err := doc.Encode()
	must(t, err)
	old, err := d.blob.Load(t.Context(), name)
	if err != nil && !errors.Is(err, poller.ErrNotFound) {
		t.Fatal(err)
	}
	_, err = d.blob.Swap(t.Context(), name, text, old.ETag)
	must(t, err)
}

func (d *console) lookup(name string) (string, bool) { v, ok := d.settings[name]; return v, ok }

func (d *console) want(t *testing.T, code int, texts []string, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	m := cli.Main{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out, Lookup: d.lookup, Pollers: Open(d.lookup)}
	if got := m.Run(t.Context(), append([]string{"poller"}, args...)); got != code {
		t.Errorf("%v: exit code %d, want %d\n%s", args, got, code, out.String())
	}
	for _, text := range texts {
		if !strings.Contains(out.String(), text) {
			t.Errorf("%v: no %q in\n%s", args, text, out.String())
		}
	}
	return out.String()
}

func (d *console) state(t *testing.T) *poller.Document {
	t.Helper()
	state, err := d.blob.Load(t.Context(), d.name)
	must(t, err)
	doc, err := poller.Decode(state.Data)
	must(t, err)
	return doc
}

// The commands in docs/pollers.md for saving and restoring a state run as written.
func TestCommandsOfTheReset(t *testing.T) {
	t.Parallel()
	d := newConsole(t)
	page, err := os.ReadFile("../../../../docs/pollers.md")
	must(t, err)
	file, ran := filepath.Join(t.TempDir(), "orders.json"), 0
	for line := range strings.Lines(string(page)) {
		command, ok := strings.CutPrefix(strings.TrimSpace(line), "roundhouse poller ")
		if !ok || !strings.Contains(command, "orders.json") {
			continue
		}
		command, _, writes := strings.Cut(command, " > ")
		args := strings.Fields(command)
		for i, arg := range args {
			args[i] = cmp.Or(map[string]string{"orders": d.name, "orders.json": file}[arg], arg)
		}
		if out := d.want(t, 0, nil, args...); writes {
			must(t, os.WriteFile(file, []byte(out), 0o600))
			d.want(t, 0, nil, "reset-to-cursor", d.name, "3", "--yes")
		}
		ran++
	}
	if doc := d.state(t); ran != 2 || doc.Cursor().Value != "2" || doc.Checkpoint.UpdatedAt.IsZero() {
		t.Errorf("%d commands, %+v", ran, doc.Checkpoint)
	}
}

// Every command of the group, over a real storage account and a real database.
func TestPollers(t *testing.T) {
	t.Parallel()
	d := newConsole(t)
	d.want(t, 0, []string{d.name, "idle", "2"}, "list")
	shown := d.want(t, 0, nil, "show", d.name, "-o", "json")
	kept := filepath.Join(t.TempDir(), "kept.json")
	must(t, os.WriteFile(kept, []byte(shown), 0o600)) // as the help says, with the surrounding document
	d.want(t, 0, []string{"caughtUp", "false", "end", "3"}, "lag", d.name)
	d.want(t, 3, nil, "show", "nobody")
	d.want(t, 3, nil, "lag", "nobody")
	d.want(t, 0, []string{"before: at 2, token 7", "after:  at 3, token 8", "applied"}, "reset-to-cursor", d.name, "3", "--yes")
	d.want(t, 0, []string{"caughtUp", "true"}, "lag", d.name)
	d.want(t, 2, []string{"no JSON object"}, "reset-to-cursor", d.name, "3", "4", "--yes")
	d.want(t, 2, []string{"it is no number"}, "reset-to-cursor", d.name, "x", "--yes")
	d.want(t, 2, []string{`"1.5" is not one of id`}, "reset-to-cursor", d.name, "1.5", "--yes")
	d.want(t, 0, []string{"before: at 3, token 8", "after:  at 2, token 9"}, "reset-to-checkpoint", d.name, kept, "--yes")
	d.want(t, 2, []string{"no such file"}, "reset-to-checkpoint", d.name, kept+"x", "--yes")
	d.want(t, 0, []string{"definition: before sha256:0, after sha256:"}, "accept-fingerprint", d.name, "--yes")
	d.want(t, 0, []string{"before: at the beginning", "after:  at 2"}, "clone-checkpoint", d.name, d.name+"x", "--yes")
	d.want(t, 4, nil, "clone-checkpoint", d.name, d.name+"x", "--yes")
	d.want(t, 0, []string{"after:  at the beginning, token 11"}, "reset-to-beginning", d.name, "--yes")

	d.write(t, d.name, "node-1")
	d.want(t, 4, []string{"node-1 has the lease"}, "break-lease", d.name, "--yes")
	d.want(t, 0, []string{`owner "node-1", which is running now and loses its lease`, `token 8, owner ""`}, "break-lease", d.name, "--yes", "--force")
	if doc := d.state(t); doc.Lease.Owner != "" || doc.Lease.Token != 8 {
		t.Errorf("%+v", doc.Lease)
	}
	d.want(t, 0, []string{"applied"}, "retire", d.name, "--yes")
	if doc := d.state(t); !doc.Retired || doc.Lease.Token != 9 {
		t.Errorf("%+v", doc)
	}
	page, err := d.audit.List(t.Context(), audit.Filter{Target: "pollers/" + d.name}, 100, "")
	must(t, err)
	var audited []string
	for _, e := range page.Entries {
		audited = append(audited, e.Action)
	}
	// The second clone, the first break-lease and an invalid place were refused.
	want := []string{"retire", "break-lease by force", "break-lease", "reset-to-beginning", "clone-checkpoint to " + d.name + "x", "clone-checkpoint to " + d.name + "x",
		"accept-fingerprint", "reset-to-checkpoint", "reset-to-cursor to 1.5", "reset-to-cursor to x", "reset-to-cursor to 3"}
	if !slices.Equal(audited, want) {
		t.Errorf("in the audit log: %q", audited)
	}
	if e := page.Entries[1]; e.Outcome != audit.Done || !strings.Contains(e.Before, `owner "node-1"`) || !strings.Contains(e.After, `token 8, owner ""`) || !strings.HasPrefix(e.Principal, "local/") {
		t.Errorf("%+v", e)
	}
	if e := page.Entries[2]; e.Outcome != audit.Refused || !strings.Contains(e.After, "node-1 has the lease") {
		t.Errorf("%+v", e)
	}
	d.write(t, d.name, "node-1")
	d.want(t, 4, []string{"node-1 has the lease"}, "break-lease", d.name, "--dry-run")
	after, err := d.audit.List(t.Context(), audit.Filter{Target: "pollers/" + d.name}, 100, "")
	if must(t, err); len(after.Entries) != len(page.Entries) {
		t.Errorf("a dry run is in the audit log: %+v", after.Entries[0])
	}
	d.settings[Setting] = `{"a`
	d.want(t, 2, []string{Setting}, "list")
}

// A poller with failing ticks is listed as failing with the error, a defined poller that has never run is listed,
// too, and doctor reports both, and an unreadable state. Refusals are in the audit log.
func TestPollersThatFailAreSeen(t *testing.T) {
	t.Parallel()
	d := newConsole(t)
	failures := poller.TickFailures{Store: d.blob, Poller: d.name}
	must(t, failures.Add(t.Context(), errors.New("fetch postgres public.orders: the database cannot be reached")))
	fresh, damaged := azuritetest.Name("fresh"), azuritetest.Name("damaged")
	d.settings[Setting] = strings.TrimSuffix(d.settings[Setting], "}") + `,"` + fresh + `":{"connection":{"setting":"NONE"},"source":` + strings.Replace(source, "%s", "", 1) + `,"deliver":{"engine":{"engine":"update"}}}}`
	_, err := d.blob.Swap(t.Context(), damaged, []byte("{"), "")
	must(t, err)
	var list struct {
		Items []struct{ Poller, Condition, Problem, Error string }
	}
	must(t, json.Unmarshal([]byte(d.want(t, 0, nil, "list", "-o", "json")), &list))
	got := map[string][2]string{}
	for _, item := range list.Items {
		got[item.Poller] = [2]string{item.Condition, item.Problem + item.Error}
	}
	if g := got[d.name]; g != [2]string{"failing", "fetch postgres public.orders: the database cannot be reached"} {
		t.Errorf("a poller whose ticks fail: %q", g)
	}
	if g := got[fresh]; g != [2]string{"new", ""} {
		t.Errorf("a poller that has never run: %q", g)
	}
	if g := got[damaged]; g[0] != "damaged" || !strings.Contains(g[1], "state document damaged") {
		t.Errorf("a state that cannot be read: %q", g)
	}
	d.want(t, 0, []string{d.name, "failing", fresh, "new", "the database cannot be reached"}, "list")
	var out bytes.Buffer
	m := cli.Main{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out, Lookup: d.lookup, Pollers: Open(d.lookup)}
	m.Run(t.Context(), []string{"doctor", "--storage", d.settings["AzureWebJobsStorage"]})
	for _, text := range []string{"poller " + d.name, "failing: fetch postgres public.orders", "poller " + fresh, "it has never run", "poller " + damaged, "damaged: "} {
		if !strings.Contains(out.String(), text) {
			t.Errorf("doctor has no %q:\n%s", text, out.String())
		}
	}
	d.want(t, 1, []string{"state document damaged"}, "retire", damaged, "--yes")
	page, err := d.audit.List(t.Context(), audit.Filter{Target: "pollers/" + damaged}, 10, "")
	must(t, err)
	if len(page.Entries) != 1 || page.Entries[0].Outcome != audit.Refused || page.Entries[0].Action != "retire" {
		t.Errorf("in the audit log: %+v", page.Entries)
	}
}

// Nothing changes without a confirmation; at a terminal, that is the poller's name.
func TestGuards(t *testing.T) {
	t.Parallel()
	d := newConsole(t)
	d.want(t, 4, []string{"add --yes"}, "reset-to-beginning", d.name)
	d.settings["ROUNDHOUSE_ENVIRONMENT"] = "production"
	d.want(t, 0, []string{"Dry run", "add --execute"}, "reset-to-beginning", d.name, "--yes")
	d.want(t, 0, []string{`"dryRun": true`}, "reset-to-beginning", d.name, "-o", "json")
	for typed, want := range map[string]int{"yes": 4, d.name: 0} {
		us, program, err := pty.Open()
		must(t, err)
		ended := make(chan int, 1)
		m := cli.Main{Stdin: program, Stdout: program, Stderr: program, Lookup: d.lookup, Pollers: Open(d.lookup)}
		go func() {
			ended <- m.Run(context.WithoutCancel(t.Context()), []string{"poller", "reset-to-beginning", d.name, "--execute"})
		}()
		var seen strings.Builder
		piece := make([]byte, 4096)
		for !strings.Contains(seen.String(), "to go on: ") {
			n, err := us.Read(piece)
			must(t, err)
			seen.Write(piece[:n])
		}
		_, err = us.WriteString(typed + "\n")
		must(t, err)
		if code := <-ended; code != want || !strings.Contains(seen.String(), "before: at 2, token 7") {
			t.Errorf("%q: exit code %d\n%s", typed, code, seen.String())
		}
		must(t, us.Close(), program.Close())
		if doc := d.state(t); typed == "yes" && doc.Lease.Token != 7 {
			t.Errorf("changed without a confirmation: %+v", doc.Lease)
		}
		if want == 0 {
			if doc := d.state(t); doc.Checkpoint != nil || doc.Lease.Token != 8 {
				t.Errorf("%+v", doc)
			}
			d.write(t, d.name, "") // maps have no order
		}
	}
}
