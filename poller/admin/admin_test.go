package admin_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/poller/admin"
	"github.com/vibedata/roundhouse/tables"
)

func newAdmin(t *testing.T, intercept faults.Interceptor) admin.Admin {
	t.Helper()
	const source = `"connection": {"setting": "DSN"}, "source": {"dialect": %q, "sourceId": "shop", "table": "orders", "cursor": "id", "keys": ["id"]}, "deliver": {"engine": {"engine": "update"}}, "state": "table"`
	settings, err := poller.ParseSettings(`{"odd": {` + fmt.Sprintf(source, "oracle") + `}, "orders": {` + fmt.Sprintf(source, "sqlite") + `}}`)
	a := admin.Admin{Blob: poller.BlobStore{Blobs: faults.Blobs(blobs.NewMemory(), intercept)}, Table: poller.TableStore{Tables: faults.Tables(tables.NewMemory(), intercept)}, Settings: settings,
		DSN: func(context.Context, poller.Setting) (string, error) { return "", errors.New("nobody may ask") }}
	testenv.OK(t, errors.Join(err, a.Blob.Create(t.Context()), a.Table.Create(t.Context())))
	return a
}

// States are found in both stores, undefined pollers included, and a list costs one read per poller.
func TestPollersWhereverTheyAre(t *testing.T) {
	t.Parallel()
	reads := make(chan struct{}, 1000)
	a := newAdmin(t, func(ctx context.Context, _ faults.Call, next func(context.Context) error) error {
		reads <- struct{}{}
		return next(ctx)
	})
	doc := func(name string) []byte {
		return testenv.Must((&poller.Document{Version: 1, PollerName: name}).Encode())(t)
	}
	for name, store := range map[string]poller.Store{"left-in-a-blob": a.Blob, "left-in-the-table": a.Table, "orders": a.Table} {
		testenv.Must(store.Swap(t.Context(), name, doc(name), ""))(t)
	}
	for len(reads) > 0 {
		<-reads
	}
	page, more, err := a.Page(t.Context(), "", 10)
	if err != nil || more || len(reads) > 2+2*len(page)+2 {
		t.Errorf("%d reads, more %v, %v", len(reads), more, err)
	}
	got := map[string]poller.Condition{}
	for _, p := range page {
		got[p.Name] = p.Condition()
	}
	want := map[string]poller.Condition{"left-in-a-blob": poller.Idle, "left-in-the-table": poller.Idle, "odd": poller.New, "orders": poller.Idle}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
	if d, ok := page[2].Definition(); !ok || d.Dialect != "oracle" { // unknown to the program
		t.Errorf("%+v, %v", d, ok)
	}
	for name := range map[string]bool{"left-in-a-blob": true, "left-in-the-table": true} {
		made, err := a.Change(t.Context(), name, admin.Change{Kind: admin.Retire})
		if err != nil || !made.Applied {
			t.Errorf("%s: %+v, %v", name, made, err)
		}
	}
	if second, more, err := a.Page(t.Context(), "left-in-a-blob", 2); err != nil || !more || len(second) != 2 || second[0].Name != "left-in-the-table" || second[0].Condition() != poller.Retired {
		t.Errorf("%+v, more %v, %v", second, more, err)
	}
	if _, err := a.Change(t.Context(), "left-in-a-blob", admin.Change{Kind: admin.CloneCheckpoint, To: "orders"}); !errors.Is(err, poller.ErrInvalid) {
		t.Errorf("a clone that its poller would not find: %v", err)
	}
	if _, err := a.Change(t.Context(), "orders", admin.Change{Kind: "explode"}); !errors.Is(err, poller.ErrInvalid) {
		t.Errorf("a change that there is not: %v", err)
	}
	if _, err := a.Lag(t.Context(), "left-in-the-table"); !errors.Is(err, admin.ErrNotDefined) {
		t.Errorf("the lag of one that is not defined: %v", err)
	}
	if _, err := a.Get(t.Context(), "nobody"); !errors.Is(err, poller.ErrNotFound) {
		t.Errorf("nobody: %v", err)
	}
}
