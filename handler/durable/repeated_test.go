package durable

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
)

// The host repeats a request without a body when the handler dies under it, with the id that it has given to the request.
// Whenever that happens, the repeat changes nothing; a request of its own does.
func TestRepeatsByTheHost(t *testing.T) {
	t.Parallel()
	const first, second = "0b8a4a62-7df5-4f4e-9a3c-3a6ad4cf2f11", "5e0d7c3b-17a9-4a4e-8d55-9f3f6f4ad1c7"
	for _, path := range []string{
		"/orchestrators/Hello", "/orchestrators/Hello/mine", "/instances/Completed/restart",
		"/instances/Completed/restart?restartWithNewInstanceId=false", "/instances/Failed/rewind",
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { repeat(t, path, first, second) })
		})
	}
}

func repeat(t *testing.T, path, first, second string) {
	t.Helper()
	after := func(invocations ...string) []string {
		b := filled(t)
		for _, id := range invocations {
			if rec := b.send(t, http.MethodPost, base+path, "", "X-Azure-Functions-InvocationId", id); rec.Code != http.StatusAccepted {
				t.Errorf("%s: %d %s", path, rec.Code, rec.Body)
			}
			b.drive(t)
		}
		return b.executions(t)
	}
	once, repeated, twice := after(first), after(first, first), after(first, second)
	testenv.Diff(t, once, repeated, "%s: a repeat makes a difference", path)
	if cmp.Equal(once, twice) {
		t.Errorf("%s: another request makes no difference: %s", path, once)
	}
}

// executions lists the orchestrations with how often they were begun.
func (b *bench) executions(t *testing.T) (all []string) {
	t.Helper()
	found, _, err := b.runtime.List(t.Context(), orchestrator.Filter{}, 100, "")
	testenv.Check(t, err)
	for _, s := range found {
		all = append(all, fmt.Sprint(s.ID, " ", s.Execution))
	}
	slices.Sort(all)
	return all
}
