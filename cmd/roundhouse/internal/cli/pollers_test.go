package cli

import (
	"encoding/json"
	"strings"
	"testing"
)

// A place is one line, also if a document has its keys over several.
func TestPlace(t *testing.T) {
	t.Parallel()
	for cursor, want := range map[string]string{
		`null`:                        "the beginning",
		`{"value":"2"}`:               "2",
		`{"value":2,"tiebreaker":{}}`: "2 {}",
		"{\n  \"value\": \"2026-11-21T10:00:00Z\",\n  \"tiebreaker\": {\n    \"region\": \"eu\",\n    \"id\": 5\n  }\n}": `2026-11-21T10:00:00Z {"region":"eu","id":5}`,
	} {
		document := json.RawMessage(`{"checkpoint":{"cursor":` + cursor + `}}`)
		if got := stateOf(document).Checkpoint.Cursor.String(); got != want {
			t.Errorf("%s: %s, want %s", cursor, got, want)
		}
		for _, line := range differences(PollerEffect{Before: document, After: document}) {
			if strings.Contains(line, "\n") {
				t.Errorf("%s: %s", cursor, line)
			}
		}
	}
}
