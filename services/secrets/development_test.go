package secrets_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/services/secrets"
	"github.com/vibedata/roundhouse/tables"
)

// failingTables fails each change with one error, optionally after applying it.
type failingTables struct {
	tables.Store
	err     error
	applied bool
}

func (f failingTables) Apply(ctx context.Context, table string, ops ...tables.Op) error {
	if f.applied {
		if err := f.Store.Apply(ctx, table, ops...); err != nil {
			return err
		}
	}
	return f.err
}

func TestDevelopmentErrors(t *testing.T) {
	t.Parallel()
	cases := []struct {
		from    error
		applied bool
		want    error
	}{
		{tables.ErrThrottled, false, secrets.ErrThrottled},
		{tables.ErrOutcomeUnknown, true, secrets.ErrOutcomeUnknown},
		{tables.ErrTooLarge, false, secrets.ErrInvalid},
		{tables.ErrNotFound, false, secrets.ErrNotFound},
		{errors.New("other"), false, nil},
	}
	for _, c := range cases {
		store := secrets.NewDevelopment(failingTables{newTables(t), c.from, c.applied})
		_, err := store.Add(t.Context(), "key", []byte("v"), nil)
		checkKind(t, c.from.Error(), err, c.want)
		if !errors.Is(err, c.from) {
			t.Errorf("Add = %v, want %v in it", err, c.from)
		}
		if got, err := store.Versions(t.Context(), "key"); err != nil || (len(got) == 1) != c.applied {
			t.Errorf("%v: Versions = %v, %v; want one: %v", c.from, got, err, c.applied)
		}
	}
}

func TestDevelopmentAddSentTwice(t *testing.T) {
	t.Parallel()
	store := secrets.NewDevelopment(failingTables{newTables(t), tables.ErrExists, true})
	v := testenv.Must(store.Add(t.Context(), "key", []byte("v"), nil))(t)
	if got, err := store.Versions(t.Context(), "key"); err != nil || len(got) != 1 || got[0].Version != v.Version {
		t.Errorf("Versions = %v, %v; want %s alone", got, err, v.Version)
	}
}

func TestDevelopmentListsOldestFirst(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 0, 0, 0, 999, time.FixedZone("east", 3600))
	store := secrets.NewDevelopment(newTables(t))
	store.Now = func() time.Time { return now }
	var want []string
	for range 10 {
		v := testenv.Must(store.Add(t.Context(), "key", []byte("v"), nil))(t)
		if wantCreated := now.UTC().Truncate(time.Second); v.Created != wantCreated {
			t.Errorf("Created = %v, want %v", v.Created, wantCreated)
		}
		want = append(want, v.Version)
		now = now.Add(time.Second)
	}
	got, err := store.Versions(t.Context(), "key")
	if err != nil || len(got) != len(want) {
		t.Fatalf("Versions = %v, %v", got, err)
	}
	for i := range got {
		if got[i].Version != want[i] {
			t.Errorf("version %d is %s, want %s", i, got[i].Version, want[i])
		}
	}
}
