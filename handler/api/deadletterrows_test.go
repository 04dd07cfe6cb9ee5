package api

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/audit"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler/api/bulk"
)

// named are dead letters of a bench, as a body names them.
func (b *outboxBench) named(messages ...string) string {
	var rows []string
	for _, m := range messages {
		rows = append(rows, fmt.Sprintf(`{"engine":"hmac","rowKey":%q}`, strings.TrimPrefix(b.letter("hmac", m), "/api/dlq/hmac/")))
	}
	return "[" + strings.Join(rows, ",") + "]"
}

// Dead letters that are named are sent again, or expired, and no others; each counts once, and the audit log has how many there were
// and the hash of their names.
func TestBulkOverNamedDeadLetters(t *testing.T) {
	t.Parallel()
	b := newBuried(t, 5)
	op := b.start(t, "/api/dlq/retry", `{"rows":`+b.named("m1", "m3", "m1")+`,"ratePerSecond":100}`, "Idempotency-Key", "k")
	if op.Request.Selected != 2 || op.Request.Selection == "" || op.Request.Rows != nil {
		t.Errorf("%+v", op.Request)
	}
	if again := b.start(t, "/api/dlq/retry", `{"rows":`+b.named("m1", "m3")+`,"ratePerSecond":100}`, "Idempotency-Key", "k"); again.ID != op.ID {
		t.Errorf("another operation: %+v", again)
	}
	if rec := b.send(t, http.MethodPost, "/api/dlq/retry", `{"rows":`+b.named("m1", "m4")+`,"ratePerSecond":100}`, "Idempotency-Key", "k"); rec.Code != http.StatusUnprocessableEntity {
		t.Errorf("other rows with that key: %d", rec.Code)
	}
	b.drive(t)
	expire := b.start(t, "/api/dlq/expire", `{"rows":`+b.named("m0", "m1", "nothing")+`}`)
	b.drive(t)
	expire, op = data[operationItem](t, b.get(t, "/api/operations/"+expire.ID)), data[operationItem](t, b.get(t, "/api/operations/"+op.ID))
	if op.Progress.Done != 2 || op.Status != "Succeeded" || expire.Progress.Done != 1 || expire.Progress.PassedOver != 2 {
		t.Errorf("%+v, %+v", op, expire)
	}
	for m, want := range map[string]engine.DeadLetterStatus{"m0": engine.StatusExpired, "m1": engine.StatusResolved, "m2": engine.StatusPending, "m3": engine.StatusResolved, "m4": engine.StatusPending} {
		if d := data[deadLetterDetail](t, b.get(t, b.letter("hmac", m))); d.Status != want {
			t.Errorf("%s is %s", m, d.Status)
		}
	}
	page, err := door(b.tables).Audit.List(t.Context(), audit.Filter{Target: bulk.DeadLetterKind}, 10, "")
	if err != nil || len(page.Entries) != 4 || !strings.Contains(page.Entries[len(page.Entries)-1].Before, op.Request.Selection) {
		t.Errorf("%+v, %v", page, err)
	}
}

func TestNamedDeadLettersAreRefused(t *testing.T) {
	t.Parallel()
	b := newBuried(t, 2)
	many := strings.TrimSuffix(strings.Repeat(`{"engine":"hmac","rowKey":"x"},`, bulk.MaxRows+1), ",")
	for _, body := range []string{`{"rows":[]}`, `{"rows":[` + many + `]}`, `{"rows":[{"engine":"spn","rowKey":"x"}]}`, `{"rows":[{"engine":"hmac","rowKey":""}]}`, `{"rows":[{"engine":"hmac"}]}`,
		`{"rows":[{"engine":"hmac","rowKey":"x","more":1}]}`, `{"rows":[{"engine":"hmac","rowKey":"` + strings.Repeat("x", engine.MaxInstanceIDLength+1) + `"}]}`, `{"rows":["x"]}`, `{"rows":{}}`,
		`{"rows":[{"engine":"hmac","rowKey":"x"}],"engine":"hmac"}`, `{"rows":[{"engine":"hmac","rowKey":"x"}],"toDate":"2026-11-21"}`} {
		for _, path := range []string{"/api/dlq/retry", "/api/dlq/expire"} {
			if rec := b.send(t, http.MethodPost, path, body); rec.Code != http.StatusBadRequest || !strings.HasPrefix(decode(t, rec).Error.Code, "Invalid") {
				t.Errorf("%s %.100s: %d %s", path, body, rec.Code, rec.Body)
			}
		}
	}
	if rec := b.send(t, http.MethodPost, "/api/dlq/expire", `{"rows":`+b.named("m0")+`,"olderThanDays":0}`); rec.Code != http.StatusBadRequest {
		t.Errorf("both: %d %s", rec.Code, rec.Body)
	}
}
