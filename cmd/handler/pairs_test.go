package main

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
	"github.com/vibedata/roundhouse/handler/settings"
	"github.com/vibedata/roundhouse/handler/settings/settingstest"
	"github.com/vibedata/roundhouse/internal/fuzzvalue"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// The program reads the JSON settings of rotations and of certificate targets correctly. The error of an invalid
// value names the setting.
func FuzzSettings(f *testing.F) {
	fuzzvalue.Seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		s := fuzzvalue.New(data)
		checkRotations(t, s)
		checkTargets(t, s)
	})
}

// written returns a value as an operator writes it in a setting.
func written(t *testing.T, v any) string {
	t.Helper()
	text := testenv.Must(json.Marshal(v))(t)
	return string(text)
}

// only reads an environment of one setting.
func only(name, value string) *settings.Reader {
	return settings.NewReader(settingstest.Environment{name: value}.Lookup)
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
	r := only(rotationsSetting, text)
	all := rotationsFrom(r)
	if err := r.Err(); err != nil {
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
	var got tls.StaticTargets
	r := only(targetsSetting, text)
	r.JSON(targetsSetting, &got)
	if diff := cmp.Diff(targets, got, cmpopts.EquateEmpty()); r.Err() != nil || diff != "" {
		t.Errorf("%s: %v %s", text, r.Err(), diff)
	}
	if r := only(targetsSetting, text+" x"); r.JSON(targetsSetting, &got) || r.Err() == nil {
		t.Error("what stands behind the targets is not seen")
	}
}
