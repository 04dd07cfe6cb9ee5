package acceptance

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/engine/release"
	"github.com/vibedata/roundhouse/engine/updatepublisher"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// releases are for a ring without instances, until a test adds some.
const releases = `[{"ring":"canary","version":"2.1","components":[{"name":"db","version":"8"}]}]`

// enrol adds an instance to the registry.
func (p *platform) enrol(t *testing.T, instance string, fields map[string]any) {
	t.Helper()
	document := registry.Instance{InstanceID: instance, TenantID: "tenant-" + instance}
	for name, value := range fields {
		testenv.OK(t, document.SetField(name, value))
	}
	testenv.Must(registry.New(p.tables, "").Create(t.Context(), document))(t)
}

// testReleases lets the schedule notify the instances that lack the version of their ring.
func (w *world) testReleases(t *testing.T) {
	e := at(updatepublisher.Engine, updatepublisher.Queue)
	behind, there := "behind-"+uuid.NewString(), "there-"+uuid.NewString()
	w.enrol(t, behind, map[string]any{"ring": "canary", "version": "2.0"})
	w.enrol(t, there, map[string]any{"ring": "canary", "version": "2.1"})
	w.runByHand(t, updatepublisher.Engine, `{}`)
	known := url.Values{"engine": {updatepublisher.Engine}}
	testenv.Until(t, "the evaluation", func() bool { return len(w.list(t, "/api/history", known)) > 0 })
	id := fmt.Sprint(w.list(t, "/api/history", known)[0]["correlationId"])
	w.ran(t, e, id, "evaluate of publisher Succeeded", "notify of publisher Succeeded Succeeded")
	w.allWell(t, id, 1)
	events := w.sink.told(t, release.EventAvailable, id)
	if n := decode[release.Notice](t, events[0].Body); len(events) != 1 || events[0].Tenant != "tenant-"+behind || n.InstanceID != behind || n.Version != "2.1" || len(n.Components) != 1 {
		t.Errorf("%d events, the first for %s: %+v", len(events), events[0].Tenant, n)
	}
}

// testReleasesDead: the document of an instance is invalid.
func (w *world) testReleasesDead(t *testing.T) {
	e, id, instance := at(updatepublisher.Engine, updatepublisher.Queue), uuid.NewString(), "damaged-"+uuid.NewString()
	w.enrol(t, instance, map[string]any{"ring": 7})
	body := e.message(t, engine.Message{CorrelationID: id, Operation: updatepublisher.OperationNotify, InstanceID: instance})
	w.send(t, updatepublisher.Queue, body)
	w.buried(t, grave{entrance: e, correlationID: id, body: body, reason: "notify instance " + instance, count: 1})
	w.checkHistory(t, e, id, w.rests(t, e, id), []string{"notify of " + instance + " Failed Failed"})
}
