package trigger

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"
)

// metadata is the Metadata object of an invocation. The host sends a scalar as a JSON string that holds JSON text
// ("1", "\"id\""); its documentation shows plain values (1, "id"). Both are read, and missing or invalid values are
// zero.
type metadata map[string]json.RawMessage

// dropOverwritten removes metadata that a message has replaced. Unless the trigger is binary, the host copies the
// top-level members of a message that is a JSON object over its own metadata, ignoring case: a message could set its
// own dequeue count.
func (m metadata) dropOverwritten(message string) {
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(message), &members) != nil {
		return
	}
	for member := range members {
		for key := range m {
			if strings.EqualFold(key, member) {
				delete(m, key)
			}
		}
	}
}

func (m metadata) text(key string) string {
	return scalar(m[key])
}

// count returns a number of 1 or more; 1 if it is missing.
func (m metadata) count(key string) int {
	n, err := strconv.ParseInt(scalar(m[key]), 10, 64)
	if err != nil || n < 1 {
		return 1
	}
	return int(min(n, math.MaxInt32))
}

func (m metadata) time(key string) time.Time {
	return instant(m[key])
}

// scalar returns the text of a JSON scalar in any of the host's forms: 1, "1", "\"1\"". Objects, arrays and null are
// "".
func scalar(value json.RawMessage) string {
	var s string
	if json.Unmarshal(value, &s) == nil {
		var inner string
		if strings.HasPrefix(s, `"`) && json.Unmarshal([]byte(s), &inner) == nil {
			return inner
		}
		return s
	}
	text := string(value)
	if text == "" || text[0] == '{' || text[0] == '[' {
		return ""
	}
	return text
}

// instant returns a time in the host's ISO 8601 form, in UTC.
func instant(value json.RawMessage) time.Time {
	t, err := time.Parse(time.RFC3339, scalar(value))
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}

// flag returns a boolean; false if it is missing.
func flag(value json.RawMessage) bool {
	return strings.EqualFold(scalar(value), "true")
}
