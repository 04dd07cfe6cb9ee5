package outbox

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/tables"
)

// Any row is refused with a typed error, or is the same after it was written again.
func FuzzDecode(f *testing.F) {
	f.Add("acme", "m-1", "", "", "{}", int64(0))
	f.Add("a=2Fb", "p-1", key(1).String(), `[{"at":"2026-11-21T12:00:00Z","tookMs":3}]`, "", int64(1))
	f.Fuzz(func(t *testing.T, partition, row, key, attempts, payload string, version int64) {
		e := tables.Entity{Key: tables.Key{Partition: partition, Row: row}, Properties: map[string]any{
			"Id": "1", "IdempotencyKey": key, "Attempts": attempts, "Payload": payload, "SchemaVersion": version,
		}}
		m, err := decode(e)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrSchemaVersion) {
				t.Errorf("untyped error %v", err)
			}
			return
		}
		again := testenv.Must(decode(m.entity()))(t)
		again.extra, m.extra, again.SchemaVersion, m.SchemaVersion = nil, nil, 0, 0
		testenv.Equal(t, "", m, again, cmp.AllowUnexported(message{}))
	})
}

// Any wake-up is refused or names a tenant.
func FuzzDecodeWake(f *testing.F) {
	f.Add(`{"tenant":"acme"}`)
	f.Add("eyJ0ZW5hbnQiOiJhIn0=")
	f.Fuzz(func(t *testing.T, text string) {
		w, err := DecodeWake(text)
		if err != nil && !errors.Is(err, ErrInvalid) || err == nil && w.Tenant == "" {
			t.Errorf("%+v, %v", w, err)
		}
	})
}
