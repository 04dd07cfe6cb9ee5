package sqlsource

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestDecode(t *testing.T) {
	t.Parallel()
	got, err := Decode([]byte(`{"dialect":"postgres","sourceId":"shop","table":"public.orders","cursor":"changed","keys":["id"],"settle":"10s","timeout":"1m",
		"where":[{"column":"kind","op":"=","value":9007199254740993}]}`))
	want := Config{Dialect: Postgres, SourceID: "shop", Table: "public.orders", Cursor: "changed", Keys: []string{"id"}, Settle: 10 * time.Second, Timeout: time.Minute,
		Where: []Condition{{Column: "kind", Op: "=", Value: json.Number("9007199254740993")}}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for text, complaint := range map[string]string{`{"settle":"10"}`: "settle", `{"timeout":"-1s"}`: "timeout", `{"settle":5}`: "settle", `{"dns":"x"}`: "dns", `[]`: "source", ``: "source"} {
		if _, err := Decode([]byte(text)); err == nil || !strings.Contains(err.Error(), complaint) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
