package environ_test

import (
	"slices"
	"testing"

	"github.com/vibedata/roundhouse/internal/environ"
)

func TestLookup(t *testing.T) {
	t.Parallel()
	lookup := environ.Lookup([]string{
		"ROUNDHOUSE_OUTBOX=exact", "roundhouse_log_level=debug", "AzureWebJobsStorage__ACCOUNTNAME=abc", "=C:=C:\\", "broken", "EMPTY=", "Both=second", "BOTH=first",
		"bOTH=third", "ROUNDHOUSE_KEY=", "roundhouse_key=k", "TEXT=a=b",
	})
	if got := environ.Names([]string{"B=1", "=C:=x", "broken", "A="}); !slices.Equal(got, []string{"A", "B"}) {
		t.Errorf("names: %q", got)
	}
	for name, want := range map[string]string{
		"ROUNDHOUSE_OUTBOX": "exact", "roundhouse_outbox": "exact", "ROUNDHOUSE_LOG_LEVEL": "debug", "AzureWebJobsStorage__accountName": "abc", "BOTH": "first", "Both": "second", "both": "first",
		"ROUNDHOUSE_KEY": "k", "TEXT": "a=b",
	} {
		if got, ok := lookup(name); !ok || got != want {
			t.Errorf("%s: %q, %v, want %q", name, got, ok, want)
		}
	}
	if got, ok := lookup("empty"); !ok || got != "" {
		t.Errorf("an empty value: %q, %v", got, ok)
	}
	for _, name := range []string{"", "broken", "ROUNDHOUSE", "C:"} {
		if got, ok := lookup(name); ok {
			t.Errorf("%q: %q", name, got)
		}
	}
}
