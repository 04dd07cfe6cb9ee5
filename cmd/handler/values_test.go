package main

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler"
)

// Each engine of the standard runs in its profile, with the queue, the functions, the scope and the operations of the
// standard. A queue has the function that listens to it.
func TestEngineValues(t *testing.T) {
	t.Parallel()
	manifests := map[deployment]handler.Manifest{publisher: manifest(t, publisher), managedApp: manifest(t, managedApp)}
	for name, want := range map[string]struct {
		in         deployment
		engine     string
		queue      string
		function   string
		singleton  engine.Scope
		operations []string
	}{
		"publisher/provisioning":     {publisher, "provisioning", "webhook-queue", "provisioning-queue-trigger", "", []string{"webhook-received", "instance-registered", "bootstrap-complete"}},
		"publisher/hmac":             {publisher, "hmac", "hmac-rotation-queue", "hmac-queue-trigger", "", []string{"rotate", "notify"}},
		"publisher/tls":              {publisher, "tls", "tls-rotation-queue", "tls-queue-trigger", "", []string{"renew", "distribute"}},
		"publisher/spn":              {publisher, "spn", "spn-rotation-queue", "spn-queue-trigger", "", []string{"rotate"}},
		"publisher/update-publisher": {publisher, "update-publisher", "update-publisher-queue", "update-publisher-queue-trigger", "", []string{"evaluate", "notify"}},
		"publisher/alerts":           {publisher, "alerts", "monitor-alerts-queue", "alert-processor", "", []string{"process"}},
		"managed-app/update":         {managedApp, "update", "update-notifications-queue", "update-queue-trigger", engine.PerInstance, []string{"process", "component-update"}},
		"managed-app/health":         {managedApp, "health", "health-notifications-queue", "health-queue-trigger", engine.PerInstance, []string{"check", "aggregate"}},
		"managed-app/alerts":         {managedApp, "alerts", "monitor-alerts-queue", "alert-processor", "", []string{"process"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := manifests[want.in]
			at := slices.IndexFunc(m.Engines, func(d engine.Description) bool { return d.Name == want.engine })
			if at < 0 {
				t.Fatal("there is no such engine")
			}
			d := m.Engines[at]
			got := []any{d.Queue, d.Function, d.Singleton, m.Functions[d.Function].Bindings[0].QueueName}
			if diff := cmp.Diff([]any{want.queue, want.function, want.singleton, want.queue}, got); diff != "" {
				t.Errorf("queue, function, scope, what the function listens to (-want +got):\n%s", diff)
			}
			for _, operation := range want.operations {
				if !slices.Contains(d.Operations, operation) {
					t.Errorf("it has the operations %q and not %s", d.Operations, operation)
				}
			}
		})
	}
}

// All engines of a profile share one table of dead letters and one of the history, each with a timer function for its
// retention.
func TestUnifiedTables(t *testing.T) {
	t.Parallel()
	for _, in := range contexts() {
		for _, table := range []string{"engineDlq", "engineHistory"} {
			if made := created(t, in)["CreateTable"]; !slices.Contains(made, table) {
				t.Errorf("%s: the tables are %q, without %s", in, made, table)
			}
		}
		functions := manifest(t, in).Functions
		if f, ok := functions["retention-timer"]; !ok || f.Bindings[0].Type != "timerTrigger" {
			t.Errorf("%s: the retention is %+v", in, f.Bindings)
		}
	}
}
