package tasks

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/vibedata/roundhouse/internal/fuzzvalue"
	"github.com/vibedata/roundhouse/tables"
)

// A valid task is read back as it was written, with its events and its end, and lists return the same.
func FuzzTaskRows(f *testing.F) {
	fuzzvalue.Seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		s := fuzzvalue.New(data)
		want := Task{Ref: Ref{s.Name(100), "1-1"}, Name: s.Name(MaxName), Orchestrator: s.Text(256), CorrelationID: s.Text(128), TenantID: s.Text(MaxPerson), Status: Created,
			Roles: s.Strings(MaxRoles, MaxPerson), Assignee: s.Text(MaxPerson), Payload: s.JSON(), CreatedAt: s.Time(), DueAt: s.Time()}
		if s.Bool() {
			want.Payload, _ = json.Marshal(s.Text(MaxPayload / 8))
		}
		if s.Bool() {
			want.Form = json.RawMessage(`{"const":` + string(s.JSON()) + `}`)
		}
		if want.Assignee != "" {
			want.Status = Assigned
		}
		if want.Validate() != nil {
			return
		}
		ctx, store := context.Background(), tables.NewMemory()
		d := NewService(Config{Tables: store, Table: "tasks", Index: "index"})
		end := End{Status: Completed, By: s.Text(MaxPerson), At: s.Time(), Note: s.Text(MaxNote), Output: s.JSON()}
		for _, table := range []string{"tasks", "index"} {
			if err := store.CreateTable(ctx, table); err != nil {
				t.Fatal(err)
			}
		}
		if err := store.Apply(ctx, "tasks", Create(want)...); err != nil {
			t.Fatalf("it is valid and does not fit: %v", err)
		}
		got, err := d.Get(ctx, want.Ref)
		if err == nil {
			err = d.Sync(ctx, got)
		}
		if err != nil {
			t.Fatal(err)
		}
		ignore := cmpopts.IgnoreFields(Task{}, "ETag", "Events", "Seq", "ChangedAt")
		if diff := cmp.Diff(want, got, ignore, cmpopts.EquateEmpty()); diff != "" || len(got.Events) != 1 || !cmp.Equal(got.Events[0].Roles, want.Roles, cmpopts.EquateEmpty()) {
			t.Errorf("it becomes another: %s", diff)
		}
		page, err := d.List(ctx, Filter{Assignee: want.Assignee}, 1, "")
		ignoreMore := cmpopts.IgnoreFields(Task{}, "ETag", "Events", "Seq", "ChangedAt", "Payload", "Form")
		if err != nil || len(page.Tasks) != 1 || cmp.Diff(want, page.Tasks[0], ignoreMore, cmpopts.EquateEmpty()) != "" {
			t.Errorf("listed as %+v, %v", page.Tasks, err)
		}
		if err := store.Apply(ctx, "tasks", tables.Insert(end.entity(want.Ref))); err != nil {
			t.Fatal(err)
		}
		ended, err := d.Ended(ctx, want.Ref)
		if diff := cmp.Diff(&end, ended); err != nil || diff != "" {
			t.Errorf("its end becomes another: %v %s", err, diff)
		}
	})
}
