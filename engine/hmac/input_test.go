package hmac_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/services/secrets"
)

var version = strings.Repeat("0a", 16)

func TestParseInput(t *testing.T) {
	t.Parallel()
	rotate := hmac.Input{Operation: "rotate"}
	rotateSlot := hmac.Input{Operation: "rotate", Slot: "s"}
	notify := hmac.Input{Operation: "notify", Version: version, SecretName: "hmac-i"}
	arm := "/subscriptions/" + strings.Repeat("0", 36) + "/resourceGroups/größe/providers/Microsoft.Solutions/applications/" + strings.Repeat("a", 64)
	cases := []struct {
		what, operation, instance, document string
		want                                hmac.Input // zero when it is refused
	}{
		{"nothing given", "", "i", "", rotate},
		{"null", "rotate", "i", " null ", rotate},
		{"empty object", "rotate", "i", "{}", rotate},
		{"slot", "", "i", `{"slot":"s"}`, rotateSlot},
		{"long slot", "", "i", `{"slot":"` + strings.Repeat("s", 512) + `"}`, hmac.Input{Operation: "rotate", Slot: strings.Repeat("s", 512)}},
		{"notify", "notify", "i", `{"version":"` + version + `"}`, notify},
		{"notify of a secret", "notify", "i", `{"version":"` + version + `","secretName":"hmac-i"}`, notify},
		{"ARM id", "notify", arm, `{"version":"` + version + `"}`, hmac.Input{Operation: "notify", Version: version, SecretName: secrets.Name("hmac", arm)}},
		{"unknown operation", "revoke", "i", "", hmac.Input{}},
		{"operation in capitals", "Rotate", "i", "", hmac.Input{}},
		{"no instance", "", "", "", hmac.Input{}},
		{"instance too long", "", strings.Repeat("i", 513), "", hmac.Input{}},
		{"instance too long as a key", "", strings.Repeat("/", 171), "", hmac.Input{}},
		{"instance that is not UTF-8", "", "\xff", "", hmac.Input{}},
		{"not JSON", "", "i", "slot", hmac.Input{}},
		{"not an object", "", "i", "[]", hmac.Input{}},
		{"two values", "", "i", "{} {}", hmac.Input{}},
		{"rubbish behind", "", "i", "{}x", hmac.Input{}},
		{"unknown field", "", "i", `{"slots":"s"}`, hmac.Input{}},
		{"number for a slot", "", "i", `{"slot":1}`, hmac.Input{}},
		{"slot too long", "", "i", `{"slot":"` + strings.Repeat("s", 513) + `"}`, hmac.Input{}},
		{"slot that is not UTF-8", "", "i", "{\"slot\":\"\xff\"}", hmac.Input{}},
		{"document too long", "", "i", `{"slot":"s"` + strings.Repeat(" ", 8<<10) + `}`, hmac.Input{}},
		{"version for rotate", "rotate", "i", `{"version":"` + version + `"}`, hmac.Input{}},
		{"secret for rotate", "rotate", "i", `{"secretName":"hmac-i"}`, hmac.Input{}},
		{"slot for notify", "notify", "i", `{"slot":"s","version":"` + version + `"}`, hmac.Input{}},
		{"notify of nothing", "notify", "i", "", hmac.Input{}},
		{"no such version", "notify", "i", `{"version":"1"}`, hmac.Input{}},
		{"no such secret name", "notify", "i", `{"version":"` + version + `","secretName":"a/b"}`, hmac.Input{}},
	}
	for _, c := range cases {
		got, err := hmac.ParseInput(c.operation, c.instance, []byte(c.document))
		refused := c.want == hmac.Input{}
		if errors.Is(err, hmac.ErrInput) != refused || err != nil != refused {
			t.Errorf("%s: ParseInput = %v, want ErrInput: %v", c.what, err, refused)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", c.what, diff)
		}
	}
}

func TestStepsRefuseMalformedInput(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	long := strings.Repeat("x", 513)
	for _, in := range []hmac.RotateInput{
		{}, {InstanceID: "i", Slot: "s"}, {InstanceID: "i", JobID: "j"}, {Slot: "s", JobID: "j"},
		{InstanceID: long, Slot: "s", JobID: "j"}, {InstanceID: "i", Slot: long, JobID: "j"}, {InstanceID: "i", Slot: "s", JobID: long},
		{InstanceID: "i", Slot: "s", JobID: "j", TenantID: long[:129]}, {InstanceID: "i", Slot: "\xff", JobID: "j"},
	} {
		if _, err := w.steps(t).Rotate(t.Context(), in); !errors.Is(err, hmac.ErrInput) {
			t.Errorf("Rotate(%+v) = %v, want ErrInput", in, err)
		}
	}
	for _, in := range []hmac.NotifyInput{
		{}, {InstanceID: "i", SecretName: "s"}, {InstanceID: "i", Version: version}, {SecretName: "s", Version: version},
		{InstanceID: "i", SecretName: "s", Version: version, TenantID: long[:129]}, {InstanceID: "i", SecretName: "a/b", Version: version}, {InstanceID: "i", SecretName: "s", Version: "../x"},
	} {
		if _, err := w.steps(t).Notify(t.Context(), in); !errors.Is(err, hmac.ErrInput) {
			t.Errorf("Notify(%+v) = %v, want ErrInput", in, err)
		}
	}
}

// The steps accept every parsed input.
func FuzzParseInput(f *testing.F) {
	f.Add("", "i", []byte(`{"slot":"s"}`))
	f.Add("notify", "/subscriptions/ü", []byte(`{"version":"`+version+`"}`))
	f.Add("notify", "i", []byte(`{"version":"`+version+`","secretName":"x"}`))
	f.Add("rotate", "i", []byte("{\"slot\":\"\\ud800 \\u0000\"}"))
	f.Fuzz(func(t *testing.T, operation, instance string, document []byte) {
		in, err := hmac.ParseInput(operation, instance, document)
		if err != nil {
			if !errors.Is(err, hmac.ErrInput) || in != (hmac.Input{}) {
				t.Fatalf("ParseInput = %+v, %v", in, err)
			}
			return
		}
		w := newWorld(t)
		switch in.Operation {
		case hmac.OperationRotate:
			if in.Slot == "" {
				in.Slot = slot
			}
			_, err = w.steps(t).Rotate(t.Context(), hmac.RotateInput{InstanceID: instance, Slot: in.Slot, JobID: "j"})
		case hmac.OperationNotify:
			_, err = w.steps(t).Notify(t.Context(), hmac.NotifyInput{InstanceID: instance, SecretName: in.SecretName, Version: in.Version})
		default:
			t.Fatalf("operation %q", in.Operation)
		}
		if err != nil {
			t.Fatalf("a step refuses %+v for %q: %v", in, instance, err)
		}
	})
}
