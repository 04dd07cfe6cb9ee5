package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/settings"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

// destinationQueue is a queue that only the settings name.
const destinationQueue = "billing-events"

// somePollers are pollers of databases, whose state is in both kinds of stores.
const somePollers = `{
	"orders": {"connection": {"setting": "ORDERS_DSN"}, "source": {"dialect": "sqlite", "sourceId": "shop", "table": "orders", "cursor": "id", "keys": ["id"]},
		"deliver": {"engine": {"engine": "hmac", "instanceColumn": "instance"}}},
	"lost": {"connection": {"secret": "lost-dsn"}, "source": {"dialect": "sqlite", "sourceId": "lost", "table": "nothing", "cursor": "id", "keys": ["id"]}, "state": "table",
		"deliver": {"outbox": {"eventType": "order", "tenantId": "t"}}}}`

// created returns the storage that the program creates at its start in a profile, with everything that settings can
// enable: names by the operation that creates them, without poison queues.
func created(t *testing.T, d deployment) map[string][]string {
	t.Helper()
	pollers := somePollers
	if d == managedApp { // an engine of the publisher
		pollers = ""
	}
	env := emulator.With(contextSetting, string(d), settings.Pollers, pollers,
		"ROUNDHOUSE_OUTBOX", `{"destinations": {"billing": {"queue": {"queue": "`+destinationQueue+`"}}}, "routes": [{"eventType": "*", "destination": "billing"}]}`)
	var plan faults.Plan
	h, err := handler.New(handler.App{Engines: engines}, handler.Config{Lookup: env.Lookup, Tables: faults.Tables(tables.NewMemory(), plan.Intercept),
		Queues: faults.Queues(queues.NewMemory(), plan.Intercept), Blobs: faults.Blobs(blobs.NewMemory(), plan.Intercept)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	testenv.OK(t, h.Start(t.Context()))
	names := map[string][]string{}
	for _, c := range plan.Calls() {
		if strings.HasPrefix(c.Operation, "Create") {
			names[c.Operation] = append(names[c.Operation], strings.TrimSuffix(c.Target, engine.PoisonSuffix))
		}
	}
	return names
}

// The tables of docs/retention.md list everything that the program stores, nothing else, and for each the content and
// its retention.
func TestRetentionIsDocumented(t *testing.T) {
	t.Parallel()
	text := testenv.Must(os.ReadFile(filepath.Join(root, "docs", "retention.md")))(t)
	all := map[string][]string{}
	for _, d := range contexts() {
		for operation, names := range created(t, d) {
			all[operation] = append(all[operation], names...)
		}
	}
	name := regexp.MustCompile("^`([A-Za-z0-9-]+)`$")
	for heading, operation := range map[string]string{"Tables": "CreateTable", "Blob containers": "CreateContainer", "Queues": "CreateQueue"} {
		_, section, found := strings.Cut(string(text), "\n## "+heading+"\n")
		if section, _, _ = strings.Cut(section, "\n## "); !found {
			t.Fatalf("there is no %s", heading)
		}
		var documented []string
		for line := range strings.Lines(section) {
			cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
			if m := name.FindStringSubmatch(strings.TrimSpace(cells[0])); m != nil {
				documented = append(documented, m[1])
			}
			if strings.HasPrefix(line, "|") && slices.ContainsFunc(cells[1:], func(c string) bool { return strings.TrimSpace(c) == "" }) {
				t.Errorf("%s: something is not said in %s", heading, line)
			}
		}
		made := slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(all[operation]))), func(n string) bool { return n == destinationQueue })
		slices.Sort(documented)
		if diff := cmp.Diff(made, documented); diff != "" {
			t.Errorf("%s (-created +documented):\n%s", heading, diff)
		}
	}
}
