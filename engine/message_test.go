package engine

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/queues"
)

func TestDecodeMessageFillsWhatIsMissing(t *testing.T) {
	t.Parallel()
	derived := deriveCorrelationID("m1")
	tests := map[string]struct {
		body string
		want Message
	}{
		"nothing":       {`{}`, Message{CorrelationID: derived, InstanceID: PublisherInstance}},
		"everything":    {`{"correlationId":"c","engine":"e","operation":"o","instanceId":"i","tenantId":"t","input":{"a": 1},"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}`, Message{CorrelationID: "c", Engine: "e", Operation: "o", InstanceID: "i", TenantID: "t", Input: []byte(`{"a": 1}`), TraceParent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}},
		"more than all": {`{"correlationId":"c","sender":"x"}`, Message{CorrelationID: "c", InstanceID: PublisherInstance}},
		"space around":  {" \n{\"correlationId\":\"c\"}\n", Message{CorrelationID: "c", InstanceID: PublisherInstance}},
	}
	for name, tt := range tests {
		got, err := Definition{}.decodeMessage([]byte(tt.body), "m1")
		if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	if derived != deriveCorrelationID("m1") || derived == deriveCorrelationID("m2") || len(derived) != 36 {
		t.Errorf("derived correlation id %s", derived)
	}
}

// A duplicate member of the envelope, in any case, makes the message undecodable, through every entry point. Members
// in another case, and other duplicates, are accepted.
func TestMembersThatAreThereTwice(t *testing.T) {
	t.Parallel()
	for body, twice := range map[string]bool{
		`{"correlationId":"a","correlationId":"b"}`:              true,
		`{"correlationId":"a","engine":"e","CORRELATIONID":"a"}`: true,
		`{"input":{"a":1},"x":[{}],"input":{"a":2}}`:             true,
		`{"instanceId":"a","tenantId":"t","InstanceId":"b"}`:     true,
		`{"CorrelationId":"a","InstanceId":"b"}`:                 false,
		`{"sender":1,"sender":2,"input":{"a":1,"a":2}}`:          false,
	} {
		d := Definition{Name: "e", Operations: []orchestrator.AnyActivity{orchestrator.NewActivity("o", func(context.Context, int) (int, error) { return 0, nil })}}
		m, queued := d.decodeMessage([]byte(body), "m1")
		_, accepted := d.Accept([]byte(body))
		if (queued != nil) != twice || (accepted != nil) != twice || twice && m.CorrelationID != deriveCorrelationID("m1") {
			t.Errorf("%s: %+v, %v, %v", body, m, queued, accepted)
		}
		if _, err := d.startMessage(orchestrator.Start{Input: []byte(body)}); twice && err == nil {
			t.Errorf("%s: it is started", body)
		}
	}
}

func TestPutBackKeepsTheMessage(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	for _, body := range []string{"", "{}", "two\nlines\n", "\xff\x00", headerMark, strings.Repeat("x", MaxMessage)} {
		first, rest := splitHeader(Delivery{ID: "m1", InsertedAt: at, Body: []byte("plain")})
		if string(rest) != "plain" || first != (header{MessageID: "m1", InsertedAt: at}) {
			t.Fatalf("%+v %q", first, rest)
		}
		first.Attempts = 3
		wrapped, err := first.prepend([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		if len(wrapped) > queues.MaxBody {
			t.Errorf("a message of %d bytes takes %d when it is put back", len(body), len(wrapped))
		}
		again, rest := splitHeader(Delivery{ID: "m2", InsertedAt: at.Add(time.Hour), Body: wrapped})
		if again != first || string(rest) != body {
			t.Errorf("%+v %.20q", again, rest)
		}
	}
}

func FuzzDelivery(f *testing.F) {
	f.Add([]byte(`{"correlationId":"c"}`))
	f.Add([]byte(headerMark + `{"messageId":"m","insertedAt":"2026-11-21T10:00:00Z","attempts":2}` + "\n{}"))
	f.Add([]byte(headerMark + "{}\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		j, rest := splitHeader(Delivery{ID: "id", Body: body})
		if !bytes.HasSuffix(body, rest) || j.MessageID == "" || j.Attempts < 0 {
			t.Errorf("%+v of %q", j, body)
		}
		m, err := Definition{}.decodeMessage(rest, j.MessageID)
		if checkID("correlation id", m.CorrelationID) != nil || len(m.InstanceID) > MaxInstanceIDLength {
			t.Errorf("unusable ids in %+v, %v", m, err)
		}
	})
}
