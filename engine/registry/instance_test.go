package registry_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/vibedata/roundhouse/engine/registry"
)

// A readable document can be written, and reads back the same.
func FuzzInstance(f *testing.F) {
	f.Add([]byte(`{"instanceId":"i1","instanceLock":{"lockJobId":"j","lockDurationSeconds":60,"lockUntilUtc":"2026-11-21T13:00:00Z"},"registryVersion":3,"x":[1e400]}`))
	f.Add([]byte(`{"instanceLock":null,"engineTablesConfig":{"retentionDays":90,"more":{}},"INSTANCEID":"other"}`))
	f.Add([]byte(`null`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, document []byte) {
		var i, again registry.Instance
		if json.Unmarshal(document, &i) != nil {
			return
		}
		first, err := json.Marshal(i)
		if err != nil {
			t.Fatalf("%q cannot be written: %v", document, err)
		}
		if err := json.Unmarshal(first, &again); err != nil {
			t.Fatalf("%q cannot be read again: %v", first, err)
		}
		second, err := json.Marshal(again)
		if err != nil || !bytes.Equal(first, second) {
			t.Errorf("%q becomes %q, %v", first, second, err)
		}
	})
}
