package realhost

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/services/secrets"
)

// TestQueues sends messages of every form to two hosts of one app, and kills their handlers meanwhile. Each rotation is
// done and in the history once, each invalid message is one dead letter, and the queues are empty.
func TestQueues(t *testing.T) {
	testenv.RealHost(t)
	testenv.RealHostQueues(t)
	one := app{dist: stage(t), account: storage(t), key: newKey(), id: "queues", env: []string{
		// A failed message is redelivered soon, and an empty queue is polled often.
		"AzureFunctionsJobHost__extensions__queues__visibilityTimeout=00:00:01",
		"AzureFunctionsJobHost__extensions__queues__maxPollingInterval=00:00:01",
		"ROUNDHOUSE_HMAC_GRACE=3s", "ROUNDHOUSE_HMAC_PROPAGATION=1s",
	}}
	withQueues(t, one.dist)
	reschedule(t, one.dist, "*-timer", newYear)
	two := one
	two.dist = filepath.Join(t.TempDir(), "copy")
	copyDir(t, two.dist, one.dist)
	hosts := []*real{startReal(t, one), startReal(t, two)}
	tables := testenv.Must(azure.NewTables(one.account))(t)

	runs, broken := sendAll(t, one)
	history := engine.NewHistory(tables, "")
	done := func() (count int) {
		for _, id := range runs {
			entries, err := history.Run(t.Context(), hmac.Engine, id)
			if err == nil && len(entries) > 0 && entries[len(entries)-1].RunStatus != "" {
				count++
			}
		}
		return count
	}
	// A host survives two kills of its handler.
	for kill := range 4 {
		aim := len(runs) * (1 + 2*kill) / 10
		testenv.Until(t, fmt.Sprintf("%d runs are done", aim), func() bool { return done() >= aim })
		if err := hosts[kill%2].killHandler(); err != nil {
			t.Error(err)
		}
	}
	testenv.Until(t, "all runs are done", func() bool { return done() == len(runs) })
	vault := secrets.NewDevelopment(tables)
	for _, id := range runs {
		entries, err := history.Run(t.Context(), hmac.Engine, id)
		if err != nil || len(entries) != 2 || entries[0].Status != engine.StatusSucceeded || entries[1].Status != engine.StatusSucceeded {
			t.Errorf("history of %s: %v, %v", id, entries, err)
		}
		versions, err := vault.Versions(t.Context(), secrets.Name(hmac.Engine, "instance-"+id))
		if err != nil || len(versions) != 1 {
			t.Errorf("%d versions of the key of %s, %v", len(versions), id, err)
		}
	}
	takePoison(t, one, hosts[0])
	checkDead(t, one, hosts[0], len(broken))
	queues := one.queues(t)
	for _, queue := range []string{hmac.Queue, hmac.Queue + engine.PoisonSuffix} {
		testenv.Until(t, queue+" is empty", func() bool {
			n, err := queues.Length(t.Context(), queue)
			return err == nil && n == 0
		})
	}
}

// sendAll sends rotations in the forms that producers use, and invalid messages. It returns the correlation ids of the
// rotations and the bodies of the others.
func sendAll(t *testing.T, a app) (runs, broken []string) {
	t.Helper()
	queues := a.queues(t)
	to := func(queue, text string) {
		testenv.Must(queues.SendText(t.Context(), queue, text, 0))(t)
	}
	for i := range 60 {
		id := uuid.NewString()
		runs = append(runs, id)
		text := fmt.Sprintf(`{"engine":"hmac","operation":"rotate","correlationId":%q,"instanceId":"instance-%[1]s"}`, id)
		if i%2 == 1 {
			text = base64.StdEncoding.EncodeToString([]byte(text))
		}
		to(hmac.Queue, text)
		if i%10 == 0 {
			to(hmac.Queue, text) // a duplicate, while the first may run
		}
	}
	broken = []string{"this is not JSON", `{"engine":"roundabout","correlationId":"x1"}`, `{"input":"` + strings.Repeat("x", 64<<10-12) + `"}`}
	for _, text := range broken {
		to(hmac.Queue, text)
	}
	const given = `{"engine":"hmac","correlationId":"x5","instanceId":"i"}`
	to(hmac.Queue+engine.PoisonSuffix, given)
	return runs, append(broken, given)
}

// takePoison triggers the timer that drains poison queues, which otherwise runs every five minutes.
func takePoison(t *testing.T, a app, h *real) {
	t.Helper()
	got, err := send(strings.TrimPrefix(h.url, "http://"), exchange{line: "POST /admin/functions/orchestration-sweep-timer",
		headers: []string{"Content-Type: application/json", "x-functions-key: " + a.key}, body: `{"input":""}`})
	if err != nil || got.status != http.StatusAccepted {
		t.Errorf("the timer by hand: %+v, %v", got, err)
	}
}

// checkDead waits for a number of dead letters, and finds no more.
func checkDead(t *testing.T, a app, h *real, want int) {
	t.Helper()
	var list struct {
		Data struct{ Items []json.RawMessage }
	}
	testenv.Until(t, "the dead letters", func() bool {
		got, err := send(strings.TrimPrefix(h.url, "http://"), read("/api/dlq?limit=100", a.key))
		return err == nil && json.Unmarshal(got.body, &list) == nil && len(list.Data.Items) >= want
	})
	if len(list.Data.Items) != want {
		t.Errorf("%d dead letters, want %d: %s", len(list.Data.Items), want, list.Data.Items)
	}
}
