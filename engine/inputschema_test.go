package engine_test

import (
	"encoding/json"
	"strings"
	"testing"
)

// A schema of the input is an object that fits the description of an engine, which contains it unchanged.
func TestInputSchema(t *testing.T) {
	t.Parallel()
	for schema, good := range map[string]bool{
		`{"type":"object","maximum":9007199254740993}`: true, `{}`: true,
		``: false, `true`: false, `[]`: false, `{`: false, `{"$comment": "` + strings.Repeat("x", 8<<10) + `"}`: false,
	} {
		d := newBackup()
		d.InputSchema = json.RawMessage(schema)
		if err := d.Validate(); (err == nil) != good || err != nil && !strings.Contains(err.Error(), "InputSchema") {
			t.Errorf("%.100s: %v", schema, err)
		}
		if text, err := json.Marshal(d.Describe()); good && (err != nil || !strings.Contains(string(text), `"inputSchema":`+schema)) {
			t.Errorf("%s: %s, %v", schema, text, err)
		}
	}
	if err := newBackup().Validate(); err != nil {
		t.Errorf("without a schema: %v", err)
	}
}
