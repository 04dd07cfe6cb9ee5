package durable

import (
	"net/http"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/tables"
)

// A damaged instance is listed by its status, without payloads, beside the others; a command for it is not accepted, and a
// purge by filter passes it by.
func TestDamagedInstance(t *testing.T) {
	t.Parallel()
	b := filled(t)
	lost := tables.Delete(tables.Key{Partition: "Completed", Row: "r-00000001-00000001"}, "")
	testenv.Check(t, b.tables.Apply(t.Context(), "orchestrations", lost))
	shownAs := map[string]shown{}
	for _, query := range []string{"", "&showInput=false"} {
		rec := b.send(t, http.MethodGet, base+"/instances?top=100"+query, "")
		if rec.Code != http.StatusOK {
			t.Fatalf("%d %s", rec.Code, rec.Body)
		}
		for _, i := range body[[]shown](t, rec) {
			shownAs[i.InstanceID] = i
		}
		if i := shownAs["Completed"]; len(shownAs) != 7 || i.RuntimeStatus != "Completed" || string(i.Output) != "null" || i.Name == "" {
			t.Errorf("%d instances; %+v", len(shownAs), i)
		}
	}
	if i := shownAs["Failed"]; string(i.Output) == "null" {
		t.Errorf("another one has lost its output: %+v", i)
	}
	for _, r := range []struct{ method, path string }{{http.MethodGet, ""}, {http.MethodPost, "/terminate"}, {http.MethodPost, "/rewind"}, {http.MethodPost, "/restart?restartWithNewInstanceId=false"}, {http.MethodDelete, ""}} {
		if rec := b.send(t, r.method, base+"/instances/Completed"+r.path, ""); rec.Code != http.StatusInternalServerError && rec.Code != http.StatusGone {
			t.Errorf("%s %s: %d %s", r.method, r.path, rec.Code, rec.Body)
		}
	}
	rec := b.send(t, http.MethodDelete, base+"/instances?createdTimeFrom=2000-01-01T00:00:00Z", "")
	if rec.Code != http.StatusOK || strings.Contains(rec.Body.String(), `:0`) {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	if _, err := b.runtime.Status(t.Context(), "Completed"); err != nil {
		t.Error(err)
	}
}
