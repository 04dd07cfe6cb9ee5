package bulk

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
)

// An operation for a tenant changes what that tenant may see, and nothing else.
func TestBulkOfATenant(t *testing.T) {
	t.Parallel()
	owners := []string{"", "contoso", "Contoso", "fabrikam"}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0)
		p := w.process(t, nil)
		letters := w.bury(t, 40, func(i int, l *engine.DeadLetter) { l.TenantID = owners[i%len(owners)] })
		for i := range 40 {
			s := orchestrator.Start{ID: fmt.Sprint("short-", i), Orchestrator: "short", Input: []byte("1"), CorrelationID: "c", TenantID: owners[i%len(owners)]}
			testenv.Done(t)(p.runtime.Run(t.Context(), s))
		}
		<-time.After(time.Minute)
		for kind, r := range map[string]Request{
			DeadLetterKind:    {Action: ActionExpire, Tenant: "CONTOSO"},
			OrchestrationKind: {Action: ActionPurge, Tenant: "CONTOSO", IDPrefix: "short-"},
		} {
			op, err := p.operations.Start(t.Context(), kind, r, "", "corr")
			testenv.Check(t, err)
			p.work(t, w)
			end, err := p.operations.Get(t.Context(), op.ID)
			if err != nil || end.Status != orchestrator.Completed || end.Progress.Done != 20 || end.Progress.PassedOver != 0 {
				t.Errorf("%s: %+v, %v", kind, end, err)
			}
		}
		page, err := letters.List(t.Context(), engine.DeadLetterFilter{Engines: []string{"hmac"}, Status: engine.StatusPending, Limit: engine.MaxLimit})
		testenv.Check(t, err)
		left, _, err := p.runtime.List(t.Context(), orchestrator.Filter{Prefix: "short-"}, 1000, "")
		testenv.Check(t, err)
		var pending, kept []string
		for _, l := range page.DeadLetters {
			pending = append(pending, l.TenantID)
		}
		for _, s := range left {
			kept = append(kept, s.TenantID)
		}
		slices.Sort(pending)
		slices.Sort(kept)
		want := slices.Concat(slices.Repeat([]string{""}, 10), slices.Repeat([]string{"fabrikam"}, 10))
		testenv.Diff(t, [][]string{want, want}, [][]string{pending, kept}, "left are those of")
	})
}
