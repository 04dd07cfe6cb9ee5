package handler

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/engine/tls"
	"github.com/vibedata/roundhouse/internal/fuzzvalue"
	"github.com/vibedata/roundhouse/outbox"
)

// Settings in JSON are read as they are meant: the rotations, the targets of certificates, the destinations and routes of
// the outbox. What is refused says which setting it is.
func FuzzSettings(f *testing.F) {
	fuzzvalue.Seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		s := fuzzvalue.New(data)
		checkRotations(t, s)
		checkTargets(t, s)
		checkRoutes(t, s)
	})
}

// written is a value as somebody writes it into a setting.
func written(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// only is an environment of one setting.
func only(name, value string) lookupFunc {
	return func(asked string) (string, bool) {
		if asked == name {
			return value, true
		}
		return "", false
	}
}

func checkRotations(t *testing.T, s *fuzzvalue.Source) {
	t.Helper()
	type target struct {
		InstanceID string `json:"instanceId"`
		TenantID   string `json:"tenantId"`
	}
	var targets []target
	for i := range s.Int(4) {
		targets = append(targets, target{s.Name(500) + fmt.Sprint(i), s.Text(128)})
	}
	text := written(t, map[string]any{"hmac": targets})
	all, err := rotationsFrom(only(rotationsSetting, text))
	if err != nil {
		if !strings.Contains(err.Error(), rotationsSetting) {
			t.Errorf("%v does not say which setting", err)
		}
		for _, target := range targets {
			if _, bad := hmac.ParseInput(hmac.OperationRotate, target.InstanceID, nil); bad != nil {
				return
			}
		}
		t.Errorf("%s: %v", text, err)
		return
	}
	var got []target
	for _, r := range all[hmac.Engine] {
		got = append(got, target{r.instanceID, r.tenantID})
	}
	if !slices.Equal(got, targets) {
		t.Errorf("%v become %v", targets, got)
	}
}

func checkTargets(t *testing.T, s *fuzzvalue.Source) {
	t.Helper()
	var targets tls.StaticTargets
	for range s.Int(4) {
		targets = append(targets, tls.Target{ID: s.Text(100), Address: s.Text(100), NotifyURL: s.Text(100)})
	}
	text := written(t, targets)
	got, err := tlsFrom(only("ROUNDHOUSE_TLS_TARGETS", text), true)
	if diff := cmp.Diff(targets, got.Targets, cmpopts.EquateEmpty()); err != nil || diff != "" {
		t.Errorf("%s: %v %s", text, err, diff)
	}
	if _, err := tlsFrom(only("ROUNDHOUSE_TLS_TARGETS", text+" x"), true); err == nil {
		t.Error("what stands behind the targets is not seen")
	}
}

func checkRoutes(t *testing.T, s *fuzzvalue.Source) {
	t.Helper()
	type route struct {
		EventType   string `json:"eventType"`
		Tenant      string `json:"tenant"`
		Destination string `json:"destination"`
	}
	destinations, routes := map[string]any{}, []route{{"*", "", "log"}}
	destinations["log"] = map[string]any{"log": struct{}{}}
	for i := range s.Int(3) {
		name := s.Name(60) + fmt.Sprint(i)
		destinations[name] = map[string]any{"queue": map[string]string{"queue": "events", "source": "/x/{tenant}"}}
		routes = append(routes, route{"e" + fmt.Sprint(i), s.Text(128), name})
	}
	var got outboxSettings
	got.Options = outbox.DefaultOptions()
	text := written(t, map[string]any{"destinations": destinations, "routes": routes})
	if err := got.readDestinations(text, true); err != nil {
		if !strings.Contains(err.Error(), outboxSetting) {
			t.Errorf("%v does not say which setting", err)
		}
		return
	}
	var again []route
	for _, r := range got.Routes {
		again = append(again, route{r.EventType, r.TenantID, r.Destination})
	}
	if !slices.Equal(routes, again) || len(got.Destinations) != len(destinations) {
		t.Errorf("%s becomes %v", text, again)
	}
}
