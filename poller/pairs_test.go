package poller

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/internal/fuzzvalue"
	"github.com/vibedata/roundhouse/internal/testenv"
)

func anyFields(s *fuzzvalue.Source) fields {
	if s.Bool() {
		return nil
	}
	return fields{"later_" + s.Text(20): s.JSON(), "more": s.JSON()}
}

func anyCursor(s *fuzzvalue.Source) Cursor {
	kinds := Kinds()
	c := Cursor{Kind: kinds[s.Int(len(kinds)-1)], Value: s.Text(5000)}
	if s.Bool() {
		c.Tiebreaker = json.RawMessage(`{"id":` + string(s.JSON()) + `}`)
	}
	return c
}

func anyDocument(s *fuzzvalue.Source) *Document {
	d := newDocument("orders")
	d.Fingerprint, d.extra = s.Text(80), anyFields(s)
	if s.Bool() {
		d.Definition = json.RawMessage(`{"object":` + string(s.JSON()) + `}`)
	}
	d.Lease = Lease{Owner: s.Text(100), Nonce: s.Text(40), Token: s.Int64() & (1<<62 - 1), Acquired: s.Time(), Heartbeat: s.Time(), Expires: s.Time(), extra: anyFields(s)}
	if s.Bool() {
		d.Checkpoint = &Checkpoint{Cursor: anyCursor(s), LastBatchID: s.Text(60), UpdatedAt: s.Time(), Metadata: Metadata{RowCount: s.Int(1 << 20), extra: anyFields(s)},
			extra: anyFields(s), cursorExtra: anyFields(s)}
	}
	if s.Bool() {
		d.Failure = &Failure{First: s.Text(60), Rows: s.Int(5000), Attempts: s.Int(100), Error: s.Text(maxErrorText), FirstAt: s.Time(), LastAt: s.Time(), NextAt: s.Time(),
			Bisecting: s.Bool(), Suspects: s.Int(5000), Breaker: s.Bool(), extra: anyFields(s)}
	}
	if s.Bool() {
		d.Quarantine = &Quarantine{Rows: s.Int(1 << 20), Quarantined: s.Int(1 << 20), extra: anyFields(s)}
	}
	if s.Bool() {
		d.Backfill = &BackfillState{End: anyCursor(s), FrozenAt: s.Time(), Done: s.Bool(), extra: anyFields(s)}
	}
	d.PolledAt, d.Retired = s.Time(), s.Bool()
	return d
}

// A document that can be written is read unchanged, with its unknown members; so is a cursor alone, in a document or as
// operators write it in a file.
func FuzzDocuments(f *testing.F) {
	fuzzvalue.Seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		want := anyDocument(fuzzvalue.New(data))
		text, err := want.Encode()
		if err != nil {
			return
		}
		got, err := Decode(text)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, text)
		}
		plain := cmp.Transformer("plain", func(raw json.RawMessage) string {
			var compacted json.RawMessage
			if json.Unmarshal(raw, &compacted) != nil || len(raw) == 0 {
				return string(raw)
			}
			text, err := json.Marshal(compacted)
			if err != nil {
				return string(raw)
			}
			return string(text)
		})
		exported := cmp.AllowUnexported(Document{}, Checkpoint{}, Metadata{}, Lease{}, Failure{}, Quarantine{}, BackfillState{})
		if diff := cmp.Diff(want, got, exported, plain); diff != "" {
			t.Errorf("it becomes another: %s", diff)
		}
		if !want.Cursor().Equal(got.Cursor()) {
			t.Errorf("the place %v becomes %v", want.Cursor(), got.Cursor())
		}
		if want.Checkpoint == nil || want.Cursor().check() != nil {
			return
		}
		file := testenv.Must(json.Marshal(want.Checkpoint))(t)
		for _, file := range [][]byte{text, file} {
			if restored, err := readCheckpoint("orders", file); err != nil || !restored.Cursor().Equal(want.Cursor()) {
				t.Errorf("restored as %v, %v", restored, err)
			}
		}
	})
}
