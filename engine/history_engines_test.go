package engine_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/tables"
)

// Tools read the registered engines: of several apps, in the last form, and next to the history.
func TestRegister(t *testing.T) {
	t.Parallel()
	h := engine.NewHistory(tables.NewMemory(), "")
	if _, _, err := h.Registered(t.Context()); !errors.Is(err, tables.ErrNotFound) {
		t.Errorf("without the table: %v", err)
	}
	if err := h.CreateTable(t.Context()); err != nil {
		t.Fatal(err)
	}
	if engines, names, err := h.Registered(t.Context()); err != nil || len(engines)+len(names) != 0 {
		t.Errorf("before anything was registered: %v, %v, %v", engines, names, err)
	}
	first := []engine.Description{{Name: "a/b", Queue: "old"}}
	for n := range 120 { // more than a transaction holds
		first = append(first, engine.Description{Name: "e" + string(rune('0'+n%10)) + string(rune('a'+n/10)), Queue: "q"})
	}
	second := []engine.Description{{Name: "a/b", Queue: "new", Example: &engine.Message{InstanceID: "i"}}}
	for range 2 {
		if err := errors.Join(h.Register(t.Context(), first, []string{"outbox", "a/b"}), h.Register(t.Context(), second, []string{"poller-x"})); err != nil {
			t.Fatal(err)
		}
	}
	engines, names, err := h.Registered(t.Context())
	if err != nil || len(engines) != 121 || len(names) != 123 || !slices.Contains(names, "outbox") || !slices.Contains(names, "poller-x") {
		t.Fatalf("%d engines, %d names, %v", len(engines), len(names), err)
	}
	at := slices.IndexFunc(engines, func(d engine.Description) bool { return d.Name == "a/b" })
	if diff := cmp.Diff(second[0], engines[at]); diff != "" {
		t.Error(diff)
	}
	page, err := h.List(t.Context(), engine.HistoryFilter{Engines: names[:1]})
	if err != nil || len(page.Entries) != 0 {
		t.Errorf("the list shows them: %v, %v", page, err)
	}
}
