package outbox

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/internal/fuzzvalue"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/tables"
)

// A message that the writer accepts is read unchanged from each of its rows, after every change, and its event has its
// payload.
func FuzzMessageRows(f *testing.F) {
	fuzzvalue.Seeds(f)
	w := &Writer{o: &Outbox{now: time.Now}}
	f.Fuzz(func(t *testing.T, data []byte) {
		s := fuzzvalue.New(data)
		m := Message{TenantID: s.Text(MaxIDLength + 1), EventType: s.Name(MaxIDLength), Payload: s.JSON(), Key: uuid.UUID(append(s.Bytes(16), make([]byte, 16)...)[:16]),
			OrderKey: s.Text(MaxIDLength), CorrelationID: s.Text(MaxIDLength), TraceParent: s.Text(MaxIDLength)}
		if s.Int(3) == 0 {
			m.Payload, _ = json.Marshal(s.Text(spillPayload / 6))
		}
		msg, err := w.prepare(m)
		if err != nil {
			if m.TenantID != "" && len(m.TenantID) <= MaxIDLength {
				t.Errorf("not taken: %v", err)
			}
			return
		}
		msg.CreatedAt, msg.NextAttemptAt, msg.DeadAt, msg.ProcessedAt = s.Time(), s.Time(), s.Time(), s.Time()
		msg.RetryCount, msg.IsProcessed, msg.Error, msg.Destination = s.Int(1<<20), s.Bool(), clip(s.Text(2000), 2000), s.Text(128)
		msg.SkippedBy, msg.givenUp, msg.settlement, msg.indexRow = s.Text(128), s.Text(100), s.Text(20), s.Text(100)
		for range s.Int(maxAttempts) {
			msg.log(Attempt{At: s.Time(), Node: s.Text(60), Destination: s.Text(60), TookMilliseconds: s.Int64(), Status: s.Int(599), SentAs: s.Text(400), Error: s.Text(400)})
		}
		store := tables.NewMemory()
		testenv.OK(t, store.CreateTable(context.Background(), DefaultTable))
		rows := map[string]tables.Entity{"m": msg.entity(), "p": msg.pendingEntity(pendingRow(msg.NextAttemptAt, msg.ID))}
		for kind, row := range rows {
			if err := store.Apply(context.Background(), DefaultTable, tables.Insert(row)); err != nil {
				t.Fatalf("%s: it is taken and does not fit: %v", kind, err)
			}
			e := testenv.Must(store.Get(context.Background(), DefaultTable, row.Key))(t)
			got, err := decode(e)
			if err != nil {
				t.Fatalf("%s: %v", kind, err)
			}
			want := *msg
			if kind == "p" && len(want.Payload) > inlinePayload {
				want.Payload = nil
			}
			got.extra = nil
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(message{}), cmpopts.EquateEmpty(), cmpopts.IgnoreFields(Record{}, "ID")); diff != "" {
				t.Errorf("%s: it becomes another: %s", kind, diff)
			}
			if kind == "m" && got.ID != msg.ID {
				t.Errorf("the id %q becomes %q", msg.ID, got.ID)
			}
		}
		event, err := origin{source: "/x", subject: "{tenant}"}.toCloudEvent(msg.event(m.Payload))
		if err != nil {
			t.Fatalf("it cannot leave: %v", err)
		}
		text, err := event.encode()
		var again cloudEvent
		if err == nil {
			err = json.Unmarshal(text, &again)
		}
		if diff := cmp.Diff(event, again); err != nil || diff != "" {
			t.Errorf("the event becomes another: %v %s", err, diff)
		}
	})
}

// A token leads to its position; a wake-up to its tenant.
func FuzzPairOfTokens(f *testing.F) {
	fuzzvalue.Seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		s := fuzzvalue.New(data)
		filter := Filter{Status: StatusDead, EventType: s.Text(MaxIDLength), CreatedFrom: s.Time()}
		if s.Bool() {
			filter.TenantID = s.Name(MaxIDLength)
		}
		of := testenv.Must(statusRanges(filter.Status))(t)
		i := s.Int(len(of) - 1)
		at := position{Tenant: s.Name(MaxIDLength), Band: i, Row: of[i].prefix + digits(s.Time()) + "-" + suffix(s.Text(500))}
		if filter.TenantID != "" {
			at.Tenant = filter.TenantID
		}
		filter.Continuation = filter.token(at)
		got, err := filter.position(of)
		at.Filter = filter.fingerprint()
		if err != nil || got != at {
			t.Errorf("%+v becomes %+v, %v", at, got, err)
		}
		body := testenv.Must(json.Marshal(Wake{Tenant: at.Tenant}))(t)
		if wake, err := DecodeWake(string(body)); err != nil || wake.Tenant != at.Tenant {
			t.Errorf("the tenant %q becomes %q, %v", at.Tenant, wake.Tenant, err)
		}
	})
}
