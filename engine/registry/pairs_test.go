package registry

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/vibedata/roundhouse/internal/fuzzvalue"
	"github.com/vibedata/roundhouse/tables"
)

// A created instance is read back unchanged, with unknown fields and its lock.
func FuzzRows(f *testing.F) {
	fuzzvalue.Seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		s := fuzzvalue.New(data)
		want := Instance{InstanceID: s.Name(520), TenantID: s.Text(200)}
		if s.Bool() {
			want.EngineTablesConfig = &EngineTablesConfig{StorageAccountName: s.Text(24), DlqTableName: s.Text(63), HistoryTableName: s.Text(63), RetentionDays: s.Int(3650)}
			if s.Bool() {
				want.EngineTablesConfig.Retention = map[string]int{s.Text(20): s.Int(3650)}
			}
		}
		fields := map[string]string{}
		for range s.Int(5) {
			name := s.Text(40)
			if want.SetField(name, s.JSON()) == nil {
				delete(fields, name)
				var text string
				if ok, err := want.Field(name, &text); ok && err == nil {
					fields[name] = text
				}
			}
		}
		store := tables.NewMemory()
		r := New(store, DefaultTable)
		r.Now = func() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }
		if err := r.CreateTable(context.Background()); err != nil {
			t.Fatal(err)
		}
		created, err := r.Create(context.Background(), want)
		if err != nil {
			if len(tables.EscapeKey(want.InstanceID)) <= 512 || !errors.Is(err, ErrInvalid) {
				t.Errorf("not created: %v", err)
			}
			return
		}
		job := s.Name(200)
		locked, err := r.Acquire(context.Background(), want.InstanceID, job, time.Duration(1+s.Int(100_000))*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.Get(context.Background(), want.InstanceID)
		if diff := cmp.Diff(locked, got, cmp.AllowUnexported(Instance{}), cmpopts.IgnoreFields(Instance{}, "fields")); err != nil || diff != "" {
			t.Errorf("it becomes another: %v %s", err, diff)
		}
		if got.TenantID != want.TenantID || !cmp.Equal(got.EngineTablesConfig, want.EngineTablesConfig) || got.Version != created.Version+1 || got.Lock.JobID != job {
			t.Errorf("%+v becomes %+v", want, got)
		}
		for name, text := range fields {
			var now string
			if ok, err := got.Field(name, &now); !ok || err != nil || now != text {
				t.Errorf("field %q: %q becomes %q, %v", name, text, now, err)
			}
		}
	})
}
