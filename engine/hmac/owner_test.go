package hmac_test

import (
	"encoding/json"
	"testing"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// Keys belong to the tenant that they were made for, whichever tenant adds their instance to the registry; secrets of
// other names to the platform.
func TestOwnerOfKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.steps(t)
	made := map[string]hmac.RotateOutput{}
	for name, tenant := range map[string]string{"contoso's": "contoso", "the platform's": ""} {
		made[name] = testenv.Must(s.Rotate(t.Context(), hmac.RotateInput{InstanceID: name, TenantID: tenant, Slot: slot, JobID: "j"}))(t)
	}
	notify := func(name string) json.RawMessage {
		return testenv.Must(json.Marshal(map[string]string{"version": made[name].Version, "secretName": made[name].SecretName}))(t)
	}
	for name, tt := range map[string]struct {
		instance, operation string
		input               json.RawMessage
		registered, want    string
	}{
		"its own":                   {"contoso's", "rotate", nil, "contoso", "contoso"},
		"its own, otherwise spelt":  {"contoso's", "rotate", nil, "CONTOSO", "CONTOSO"},
		"another's":                 {"contoso's", "rotate", nil, "fabrikam", "contoso"},
		"the platform's":            {"the platform's", "rotate", nil, "fabrikam", ""},
		"new":                       {"new", "rotate", nil, "fabrikam", "fabrikam"},
		"its own, told of":          {"contoso's", "notify", notify("contoso's"), "contoso", "contoso"},
		"another's secret, told of": {"new", "notify", notify("contoso's"), "fabrikam", ""},
	} {
		got, err := s.Owner(t.Context(), engine.Message{InstanceID: tt.instance, Operation: tt.operation, Input: tt.input, TenantID: tt.registered}, tt.registered)
		if err != nil || got != tt.want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, tt.want)
		}
	}
}
