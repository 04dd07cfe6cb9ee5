package poller_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/poller"
)

// specified is the document of the checkpoint document, section 4, with fields of a later program on every level.
const specified = `{
  "version": 1,
  "poller_name": "orders",
  "source_fingerprint": "sha256:00",
  "later": {"deep": [1.10, 90071992547409931234567890]},
  "checkpoint": {
    "cursor": {
      "kind": "timestamp+pk",
      "value": "2026-04-07T01:23:45.123456700Z",
      "tiebreaker": {"id": 9007199254740993},
      "shard": 18446744073709551615
    },
    "last_successful_batch_id": "batch_20260407_012346_0001",
    "updated_at": "2026-04-07T01:23:46.02Z",
    "metadata": {"row_count": 100, "bytes": 1e3},
    "Cursor": "not the cursor"
  },
  "lease": {
    "owner_id": "funcapp/instance-abc123",
    "fencing_token": 9007199254740993,
    "acquired_at": "2026-04-07T01:23:00Z",
    "heartbeat_at": "2026-04-07T01:23:20Z",
    "expires_at": "2026-04-07T01:25:00Z",
    "region": "eu"
  }
}`

func TestDocumentKeepsWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	d := testenv.Must(poller.Decode([]byte(specified)))(t)
	if c := d.Cursor(); c.Kind != "timestamp+pk" || c.Value != "2026-04-07T01:23:45.123456700Z" || string(c.Tiebreaker) != `{"id":9007199254740993}` {
		t.Errorf("the cursor is %+v", c)
	}
	if d.Lease.Token != 9007199254740993 || d.Checkpoint.Metadata.RowCount != 100 {
		t.Errorf("%+v", d)
	}
	text := testenv.Must(d.Encode())(t)
	for _, want := range []string{"90071992547409931234567890", "1.10", "18446744073709551615", "1e3", `"not the cursor"`, `"region": "eu"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s is lost:\n%s", want, text)
		}
	}
	again := testenv.Must(poller.Decode(text))(t)
	if second, err := again.Encode(); err != nil || !bytes.Equal(text, second) {
		t.Errorf("another text the second time: %v\n%s", err, cmp.Diff(string(text), string(second)))
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]error{
		"":                               poller.ErrCorrupt,
		"[]":                             poller.ErrCorrupt,
		"null":                           poller.ErrCorrupt,
		`{"version":1}`:                  poller.ErrCorrupt, // no name
		`{"version":0}`:                  poller.ErrCorrupt,
		`{"version":1.5}`:                poller.ErrCorrupt,
		`{"version":2,"poller_name":{}}`: poller.ErrVersion,
		`{"version":1,"poller_name":"a/b","lease":{}}`:                               poller.ErrCorrupt,
		`{"version":1,"poller_name":"a","lease":{"fencing_token":-1}}`:               poller.ErrCorrupt,
		`{"version":1,"poller_name":"a","lease":null}`:                               poller.ErrCorrupt,
		`{"version":1,"poller_name":"a","lease":{"fencing_token":1e30}}`:             poller.ErrCorrupt,
		`{"version":1,"poller_name":"a","lease":{},"failure":{"attempts":-1}}`:       poller.ErrCorrupt,
		`{"version":1,"poller_name":"a","lease":{},"x":"` + "\xff" + `"}`:            poller.ErrCorrupt,
		`{"version":1,"poller_name":"a","x":"` + strings.Repeat("x", 256<<10) + `"}`: poller.ErrCorrupt,
	} {
		if _, err := poller.Decode([]byte(text)); !errors.Is(err, want) {
			t.Errorf("%.80s: got %v, want %v", text, err, want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(specified))
	f.Add([]byte(`{"version":1,"poller_name":"a","lease":{},"checkpoint":{"cursor":{"value":-1.5e3}},"failure":{"batch_first":"x","suspects":2},"backfill":{"end":{}},"quarantine":{"rows":1}}`))
	f.Add([]byte(`{"version":1,"poller_name":"a","lease":{},"definition":null,"Version":3,"x":"<&>"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := poller.Decode(data)
		if err != nil {
			if !errors.Is(err, poller.ErrCorrupt) && !errors.Is(err, poller.ErrVersion) {
				t.Fatalf("an error of another kind: %v", err)
			}
			return
		}
		text, err := d.Encode()
		if err != nil {
			return // the indented document is too large
		}
		again, err := poller.Decode(text)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, text)
		}
		second, err := again.Encode()
		if err != nil || !bytes.Equal(text, second) {
			t.Fatalf("another text the second time: %v\n%s\n%s", err, text, second)
		}
		if !d.Cursor().Equal(again.Cursor()) || d.Lease.Token != again.Lease.Token {
			t.Fatalf("the place or the token changed: %v, %v", d.Cursor(), again.Cursor())
		}
	})
}

func TestEventIDs(t *testing.T) {
	t.Parallel()
	row := poller.Row{Cursor: poller.Cursor{Kind: "integer+pk", Value: "1", Tiebreaker: []byte(`{"id": 2}`)}, Key: []byte(`{"id":2}`)}
	id := poller.EventID("orders", row)
	if want := "04752c86-cb61-8495-8c1f-74100fb20af8"; id != want {
		t.Errorf("got %s", id)
	}
	spaced := row
	spaced.Key = []byte(` { "id" : 2 } `)
	if poller.EventID("orders", spaced) != id {
		t.Error("white space makes another event")
	}
	for what, other := range map[string]poller.Row{
		"key":    {Cursor: row.Cursor, Key: []byte(`{"id":3}`)},
		"value":  {Cursor: poller.Cursor{Kind: "integer+pk", Value: "2", Tiebreaker: row.Cursor.Tiebreaker}, Key: row.Key},
		"tie":    {Cursor: poller.Cursor{Kind: "integer+pk", Value: "1", Tiebreaker: []byte(`{"id":3}`)}, Key: row.Key},
		"poller": row,
	} {
		owner := "orders"
		if what == "poller" {
			owner = "order"
		}
		if poller.EventID(owner, other) == id {
			t.Errorf("another %s is the same event", what)
		}
	}
}

// stateOfARunner is the whole state of a poller that has delivered two batches of one row, while its handler has the
// third.
const stateOfARunner = `{
  "version": 1,
  "poller_name": "orders",
  "source_fingerprint": "sha256:76a866ec0ae48afb3c3afa58169f9b534088eba7da05036b87810cde52ea63ce",
  "definition": {
    "dialect": "memory",
    "sourceId": "test",
    "object": "rows",
    "cursor": "id",
    "keys": [
      "id"
    ],
    "bound": "single-writer"
  },
  "checkpoint": {
    "cursor": {
      "kind": "integer",
      "value": "2"
    },
    "last_successful_batch_id": "BATCH",
    "updated_at": "2000-01-01T00:00:20Z",
    "metadata": {
      "row_count": 1,
      "rows_total": 2
    }
  },
  "lease": {
    "owner_id": "node-1",
    "nonce": "NONCE",
    "fencing_token": 1,
    "acquired_at": "2000-01-01T00:00:00Z",
    "heartbeat_at": "2000-01-01T00:01:00Z",
    "expires_at": "2000-01-01T00:03:00Z"
  },
  "quarantine": {
    "rows": 2,
    "quarantined": 0
  }
}`

// A poller's document has the names and the forms of the checkpoint document, section 4: a heartbeat renews the lease,
// a commit also moves the checkpoint.
func TestStateOfARunner(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.source.Append(3)
		var batches []string
		w.deliver = func(_ context.Context, d poller.Delivery) error {
			batches = append(batches, d.BatchID)
			if len(batches) < 3 {
				wait(10 * time.Second)
				return nil
			}
			wait(41 * time.Second) // a heartbeat comes 40 s after the last commit
			v, err := w.operator().Show(t.Context(), name)
			if err != nil || !v.Live {
				t.Fatalf("%+v, %v", v, err)
			}
			stored, err := w.state.Get(t.Context(), "db-state", "orders.json")
			if diff := cmp.Diff(string(v.Text), string(stored)); err != nil || diff != "" {
				t.Errorf("the blob: %v, -want +got\n%s", err, diff)
			}
			for blob, err := range blobs.All(t.Context(), w.state, "db-state", "") {
				if blob != "orders.json" || err != nil {
					t.Errorf("there is %s, too: %v", blob, err)
				}
			}
			want := strings.NewReplacer("BATCH", batches[1], "NONCE", v.Document.Lease.Nonce).Replace(stateOfARunner)
			if diff := cmp.Diff(want, string(v.Text)); diff != "" || v.Document.Lease.Nonce == "" {
				t.Errorf("-want +got\n%s", diff)
			}
			return nil
		}
		w.tick(w.process(nil, func(c *poller.RunnerConfig) { c.Owner, c.Options.BatchSize, c.Options.MaxBatch = "node-1", 1, 1 }))
		if len(batches) != 3 || w.document().Cursor().Value != "3" {
			t.Errorf("%v, %+v", batches, w.document())
		}
	})
}
