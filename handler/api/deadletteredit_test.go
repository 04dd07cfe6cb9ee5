package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/audit"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/queues"
)

// checkEdit stands for that of the pipeline: it takes what does not say otherwise.
func checkEdit(_ context.Context, _ engine.DeadLetter, message []byte) error {
	switch {
	case bytes.Contains(message, []byte("wrong")):
		return fmt.Errorf("%w: the tenant has to stay", engine.ErrEdit)
	case bytes.Contains(message, []byte("never")):
		return fmt.Errorf("%w: its run is damaged", engine.ErrNotEditable)
	}
	return nil
}

// The edited message is sent once, under the name of who has sent it; the dead letter has both, and the audit log has their hashes and
// nothing of what is in them.
func TestRetryEdited(t *testing.T) {
	t.Parallel()
	b := newBuried(t, 2)
	target := b.letter("hmac", "m0")
	const message = `{"correlationId":"c0","note":"hush-hush","n":9007199254740993,"password":"abc"}`
	body := `{"message":` + quoted(t, message) + `}`
	etag := b.get(t, target).Header().Get("ETag")
	rec := b.send(t, http.MethodPost, target+"/retry-edited", body, "If-Match", etag, "X-MS-CLIENT-PRINCIPAL", anyone())
	first := data[retriedLetter](t, rec)
	if rec.Code != http.StatusOK || first.Status != engine.StatusResolved || first.MessageID == "" || first.RetriedBy != idOf("Ada", "home")+" (Ada)" {
		t.Fatalf("%d %s", rec.Code, rec.Body)
	}
	if again := data[retriedLetter](t, b.send(t, http.MethodPost, target+"/retry-edited", body, "If-Match", etag)); again != first {
		t.Errorf("%+v, then %+v", first, again)
	}
	batch, err := b.queues.Receive(t.Context(), rotations, 32, time.Minute)
	if err != nil || len(batch) != 1 || !strings.HasSuffix(string(queues.Decode(batch[0].Text)), "\n"+message) {
		t.Errorf("in the queue: %v, %v", batch, err)
	}
	d := data[deadLetterDetail](t, b.get(t, target))
	if d.OriginalMessage != `{"correlationId":"c0"}` || d.SentMessage != strings.Replace(message, "abc", "[redacted]", 1) || d.ResolutionNotes != "Retried with an edited message" {
		t.Errorf("%+v", d)
	}
	page, err := door(b.tables).Audit.List(t.Context(), audit.Filter{Target: strings.TrimPrefix(target, "/api/")}, 10, "")
	if err != nil || len(page.Entries) != 2 {
		t.Fatalf("%+v, %v", page, err)
	}
	hash := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return hex.EncodeToString(sum[:])
	}
	for _, e := range page.Entries {
		if e.Action != "retry edited" || !strings.Contains(e.Before, hash(d.OriginalMessage)) || !strings.Contains(e.After, hash(message)) || strings.Contains(fmt.Sprint(e), "hush") {
			t.Errorf("%+v", e)
		}
	}
}

func TestRetryEditedRefuses(t *testing.T) {
	t.Parallel()
	b := newBuried(t, 2)
	target := b.letter("hmac", "m0")
	b.send(t, http.MethodPost, b.letter("hmac", "m1")+"/retry", "")
	for name, test := range map[string]struct {
		target, body, etag string
		status             int
		code, says         string
	}{
		"nothing":        {target, `{}`, "", http.StatusBadRequest, codeInvalidParameter, ""},
		"empty":          {target, `{"message":""}`, "", http.StatusBadRequest, codeInvalidParameter, ""},
		"no text":        {target, `{"message":{}}`, "", http.StatusBadRequest, codeInvalidBody, ""},
		"unknown member": {target, `{"message":"{}","more":1}`, "", http.StatusBadRequest, codeInvalidBody, ""},
		"wrong":          {target, `{"message":"wrong"}`, "", http.StatusUnprocessableEntity, codeInvalidMessage, "The edited message cannot be sent: the tenant has to stay."},
		"never":          {target, `{"message":"never"}`, "", http.StatusUnprocessableEntity, codeEditUnsupported, "The dead letter cannot be retried with an edited message: its run is damaged."},
		"stale":          {target, `{"message":"{}"}`, `W/"old"`, http.StatusPreconditionFailed, codePrecondition, ""},
		"sent already":   {b.letter("hmac", "m1"), `{"message":"{}"}`, "", http.StatusConflict, codeInvalidState, "another message"},
		"none":           {b.letter("hmac", "m9"), `{"message":"{}"}`, "", http.StatusNotFound, codeNotFound, ""},
		"too large":      {target, `{"message":"` + strings.Repeat("x", maxBody) + `"}`, "", http.StatusRequestEntityTooLarge, codeBodyTooLarge, ""},
	} {
		rec := b.send(t, http.MethodPost, test.target+"/retry-edited", test.body, "If-Match", test.etag)
		if e := decode(t, rec).Error; rec.Code != test.status || e.Code != test.code || !strings.Contains(e.Message, test.says) {
			t.Errorf("%s: %d %s", name, rec.Code, rec.Body)
		}
	}
	if d := data[deadLetterDetail](t, b.get(t, target)); d.Status != engine.StatusPending || d.RetryID != "" {
		t.Errorf("it has changed: %+v", d)
	}
}
