package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/engine/tls"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/settings"
	"github.com/vibedata/roundhouse/handler/settings/settingstest"
)

// platformWith returns a platform that has only settings.
func platformWith(pairs ...string) *handler.Platform {
	return &handler.Platform{Settings: settings.NewReader(settingstest.Environment{}.With(pairs...).Lookup)}
}

// A target without certificates serves the one scheduled certificate, and none that a message brings.
func TestTheOneCertificateGoesWithoutSaying(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what, rotations, targets string
		want                     map[string][]string // ids of the targets, by certificate
	}{
		{"one", `{"tls":[{"domains":["A.example.com","www.example.com"]}]}`, `[{"id":"x","address":"a.example.com:443"}]`,
			map[string][]string{"a.example.com": {"x"}, "b.example.com": nil, "www.example.com": nil}},
		{"two", `{"tls":[{"domains":["a.example.com"]},{"domains":["b.example.com"]}]}`,
			`[{"id":"x","address":"a.example.com:443","certificates":["a.example.com"]},{"id":"y","address":"b.example.com:443","certificates":["b.example.com","a.example.com"]}]`,
			map[string][]string{"a.example.com": {"x", "y"}, "b.example.com": {"y"}}},
	} {
		p := platformWith(rotationsSetting, c.rotations, targetsSetting, c.targets)
		targets, _ := targetsOf(p, rotationsFrom(p.Settings).firstDomains())
		for certificate, want := range c.want {
			serving, err := targets.Targets(t.Context(), []string{certificate})
			var ids []string
			for _, target := range serving {
				ids = append(ids, target.ID)
			}
			if diff := cmp.Diff(want, ids); err != nil || diff != "" || p.Settings.Err() != nil {
				t.Errorf("%s, %s: %v, %v (-want +got):\n%s", c.what, certificate, err, p.Settings.Err(), diff)
			}
		}
	}
	var none tls.StaticTargets
	if targets, _ := targetsOf(platformWith(), nil); !cmp.Equal(targets, none) {
		t.Errorf("without the setting: %v", targets)
	}
}
