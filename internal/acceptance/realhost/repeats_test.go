package realhost

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/vibedata/roundhouse/internal/testenv"
)

// TestRepeats kills the handler under starts without a body, which the host repeats: each makes exactly one
// orchestration.
func TestRepeats(t *testing.T) {
	testenv.RealHost(t)
	a := app{dist: stage(t), account: storage(t), key: newKey(), id: "repeats"}
	reschedule(t, a.dist, "*-timer", newYear)
	h := startReal(t, a)
	const clients, each = 4, 60
	begin := exchange{line: "POST /api/runtime/webhooks/durabletask/orchestrators/hmac", headers: []string{"x-functions-key: " + a.key}}
	progress := make(chan bool, clients*each)
	var work sync.WaitGroup
	for range clients {
		work.Go(func() {
			for range each {
				got, err := send(strings.TrimPrefix(h.url, "http://"), begin)
				progress <- err == nil && got.status == http.StatusAccepted
			}
		})
	}
	accepted := 0
	for done := 1; done <= clients*each; done++ {
		if <-progress {
			accepted++
		}
		if done == 80 || done == 160 { // a third kill would end the host
			if err := h.killHandler(); err != nil {
				t.Error(err)
			}
		}
	}
	work.Wait()
	begun := countRuns(t, a)
	t.Logf("%d of %d starts were accepted, %d orchestrations have begun", accepted, clients*each, begun)
	if begun < accepted || begun > clients*each || accepted < clients*each-2*clients {
		t.Errorf("%d of %d starts were accepted, %d orchestrations have begun", accepted, clients*each, begun)
	}
}

// countRuns counts the orchestrations in storage: lists may miss those that a dead process started.
func countRuns(t *testing.T, a app) (n int) {
	t.Helper()
	service := testenv.Must(aztables.NewServiceClientFromConnectionString(a.account.ConnectionString(), nil))(t)
	filter := "RowKey eq 'status'"
	for pager := service.NewClient("orchestrations").NewListEntitiesPager(&aztables.ListEntitiesOptions{Filter: &filter}); pager.More(); {
		page := testenv.Must(pager.NextPage(t.Context()))(t)
		n += len(page.Entities)
	}
	return n
}
