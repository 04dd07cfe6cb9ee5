package access

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/internal/testenv"
)

const (
	homeID  = "7d6a8a3e-0a0c-4c8e-9f0b-1d2c3b4a5e6f"
	otherID = "1c2f6d3e-9e3f-4a44-8a2e-6f1d1d4a6f11"
)

func TestConceal(t *testing.T) {
	t.Parallel()
	ann, bob := homeID+"/"+otherID, otherID+"/"+homeID
	scoped := &Call{Principal: Principal{Scope: otherID}, door: Door{Control: Control{Policy: Policy{HomeTenant: homeID}}}}
	for text, want := range map[string]string{
		`{"reason":"stuck (by ` + ann + ` (Ann (CISO) Lee)) again"}`:              `{"reason":"stuck (by platform operator) again"}`,
		`{"resolvedBy":"` + strings.ToUpper(ann) + ` (a@home.example)","n":1.50}`: `{"resolvedBy":"platform operator","n":1.50}`,
		`{"by":"` + ann + `","byName":"Ann \"the\" boss","byKind":"person"}`:      `{"by":"platform operator","byName":"","byKind":"person"}`,
		`{"by":"` + ann + `","name":"x"}`:                                         `{"by":"platform operator","name":"x"}`,
		`{"by":"` + bob + `","byName":"Bob","note":"(by ` + bob + ` (Bob))"}`:     `{"by":"` + bob + `","byName":"Bob","note":"(by ` + bob + ` (Bob))"}`,
		`["` + ann + ` (unclosed","` + ann + `"]`:                                 `["platform operator","platform operator"]`,
		`{"tenantId":"` + homeID + `"}`:                                           `{"tenantId":"` + homeID + `"}`,
	} {
		got := string(scoped.Conceal([]byte(text)))
		testenv.Equal(t, text, want, got)
		if !json.Valid([]byte(got)) {
			t.Errorf("no JSON: %s", got)
		}
		home := *scoped
		home.Principal.Scope = ""
		testenv.Equal(t, "for the home tenant", text, string(home.Conceal([]byte(text))))
		testenv.Equal(t, "for anonymous callers", text, string((*Call)(nil).Conceal([]byte(text))))
	}
}
