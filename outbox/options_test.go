package outbox

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/internal/testenv"
)

func TestBackoff(t *testing.T) {
	t.Parallel()
	t.Run("Backoff_Delay_Grows_Exponentially", func(t *testing.T) {
		t.Parallel()
		o := DefaultOptions()
		want := []time.Duration{10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600}
		for retries, seconds := range want {
			ceiling := seconds * time.Second
			if got := o.Ceiling(retries); got != ceiling {
				t.Errorf("ceiling after %d: %v, want %v", retries, got, ceiling)
			}
			for _, draw := range []float64{0, 0.25, 0.999} {
				if got, want := o.Delay(retries, draw), time.Duration(float64(ceiling)*draw); got != want {
					t.Errorf("delay after %d at %v: %v, want %v", retries, draw, got, want)
				}
			}
		}
		if got := o.Ceiling(1 << 30); got != time.Hour {
			t.Errorf("ceiling after very many: %v", got)
		}
	})
	t.Run("constant", func(t *testing.T) {
		t.Parallel()
		o := Options{BaseRetryDelaySeconds: 7}
		if a, b := o.Delay(0, 0.1), o.Delay(9, 0.9); a != 7*time.Second || b != a {
			t.Errorf("%v and %v", a, b)
		}
	})
}

func TestOptions(t *testing.T) {
	t.Parallel()
	d := DefaultOptions()
	got := []any{d.PollIntervalSeconds, d.BatchSize, d.MaxRetries, d.BaseRetryDelaySeconds, d.UseExponentialBackoff, d.MaxErrorTextLength}
	testenv.Equal(t, "", []any{15, 50, 5, 10, true, 2000}, got)
	if err := errors.Join(d.Validate(), Options{}.Validate()); err != nil {
		t.Error(err)
	}
	err := Options{PollIntervalSeconds: -1, BatchSize: 501, MaxRetries: 1001, MaxErrorTextLength: 16001, ClaimDuration: time.Second, KeyForm: 9}.Validate()
	if !errors.Is(err, ErrInvalid) {
		t.Fatal(err)
	}
	for _, name := range []string{"PollIntervalSeconds", "BatchSize", "MaxRetries", "MaxErrorTextLength", "ClaimDuration", "KeyForm"} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not named in: %v", name, err)
		}
	}
	if _, err := New(Config{Options: Options{BatchSize: -1}}); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "Tables") {
		t.Error(err)
	}
}

func TestRouter(t *testing.T) {
	t.Parallel()
	to := Destinations{"a": NewLog(nil), "b": NewLog(nil), "c": NewLog(nil), "d": NewLog(nil)}
	r, err := NewRouter([]Route{
		{EventType: "order.*", Destination: "a"}, {EventType: "order.created", Destination: "b"},
		{EventType: "*", TenantID: "acme", Destination: "c"}, {EventType: "order.line.*", Destination: "d"},
	}, to)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ tenant, event, want string }{
		{"x", "order.created", "b"}, {"x", "order.deleted", "a"}, {"x", "order.line.added", "d"}, {"acme", "order.created", "c"},
		{"acme", "anything", "c"}, {"x", "orders", ""},
	} {
		got, _, err := r.Find(c.tenant, c.event)
		if got != c.want || (err != nil) != (c.want == "") || err != nil && !errors.Is(err, ErrNoRoute) {
			t.Errorf("%v: %q, %v", c, got, err)
		}
	}
	_, err = NewRouter([]Route{{EventType: "", Destination: "a"}, {EventType: "a*b", Destination: "a"}, {EventType: "x", Destination: "nowhere"},
		{EventType: "y", Destination: "a"}, {EventType: "y", Destination: "b"}}, to)
	if err == nil || strings.Count(err.Error(), "\n") != 3 || !strings.Contains(err.Error(), `"nowhere" is unknown`) {
		t.Error(err)
	}
}
