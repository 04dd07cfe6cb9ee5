package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/internal/testenv"
)

// scripted returns a contestant with given samples, one for each round.
func scripted(order *[]string, name string, rounds ...[]float64) contestant {
	return contestant{name, func(context.Context, string, time.Duration) ([]float64, error) {
		*order = append(*order, name)
		next := rounds[0]
		rounds = rounds[1:]
		return next, nil
	}}
}

func entering(f field) func(context.Context, contest) (field, error) {
	return func(context.Context, contest) (field, error) { return f, nil }
}

// The ratio is that of the medians, to the best of the peers, and is above 1 if the runtime is better.
func TestContest(t *testing.T) {
	t.Parallel()
	both := contest{sample: "some", duels: []duel{
		{name: "rate", unit: "runs/s", higher: true, goal: 12, known: 1},
		{name: "time", unit: "us", goal: 8, ours: 1, theirs: 1, known: 1},
	}}
	var order []string
	left := false
	f := field{leave: func() { left = true }, contestants: []contestant{
		scripted(&order, "us", []float64{1, 9}, []float64{100, 2}, []float64{90, 4}),
		scripted(&order, "slow", []float64{10, 8}, []float64{10, 8}, []float64{10, 8}),
		scripted(&order, "fast", []float64{999, 20}, []float64{30, 20}, []float64{20, 1}),
	}}
	figures, err := both.scenario(entering(f)).figures(t.Context(), time.Second)
	if err != nil || !left {
		t.Fatalf("left %v, %v", left, err)
	}
	if got := strings.Join(order, " "); got != "us slow fast us slow fast us slow fast" {
		t.Errorf("it is not sampled in turns: %s", got)
	}
	for i, want := range []figure{
		{"peers/rate/ours", 90, "runs/s", "in a new process"}, {"peers/rate/best", 30, "runs/s", "fast; measured in this run"}, {"peers/rate/ratio", 3, "ratio", "goal 12 or more: times better than fast, the best peer in this run"},
		{"peers/time/ours", 4, "us", "in a new process"}, {"peers/time/best", 8, "us", "slow; measured in this run"}, {"peers/time/ratio", 2, "ratio", "goal 8 or more: times better than slow, the best peer in this run"},
	} {
		got := figures[i]
		if got.Name != want.Name || got.Value != want.Value || got.Unit != want.Unit || !strings.Contains(got.note, want.note) {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

// Without measured peers, the line names the source of the known value, its date and machine, and the reason.
func TestContestWithoutPeers(t *testing.T) {
	t.Parallel()
	var order []string
	c := contest{sample: "some", duels: []duel{{name: "rate", unit: "runs/s", higher: true, goal: 12, known: 20, knownOf: "another library"}}}
	f := field{leave: func() {}, missing: errors.New("no network"), contestants: []contestant{scripted(&order, "us", []float64{60}, []float64{60}, []float64{60})}}
	figures := testenv.Must(c.scenario(entering(f)).figures(t.Context(), time.Second))(t)
	best, ratio := figures[1], figures[2]
	if best.Value != 20 || ratio.Value != 3 || !strings.Contains(best.note, "no network") {
		t.Errorf("%+v, %+v", best, ratio)
	}
	for _, says := range []string{"another library", knownDate, knownMachine, "NOT measured in this run"} {
		if !strings.Contains(ratio.note, says) || !strings.Contains(best.note, says) {
			t.Errorf("notes %q and %q do not say %q", best.note, ratio.note, says)
		}
	}
}

// A failing peer ends the comparison, and so does one that does not know the sample.
func TestContestFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	f := field{leave: func() {}, contestants: []contestant{{"us", func(context.Context, string, time.Duration) ([]float64, error) { return nil, broken }}}}
	if _, err := contests()[0].scenario(entering(f)).figures(t.Context(), time.Second); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	if _, err := inProcess(t.Context(), "go", "env", "-no-such-flag"); err == nil || !strings.Contains(err.Error(), "no-such-flag") {
		t.Errorf("error %v", err)
	}
}

// Every contest has a sample of ours, with a value for each of its duels.
func TestSamples(t *testing.T) {
	t.Parallel()
	for _, c := range contests() {
		t.Run(c.sample, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			if code := command([]string{"-sample", c.sample, "-time", "1ms"}, &stdout, &stderr); code != 0 {
				t.Fatalf("exit code %d: %s", code, &stderr)
			}
			var values []float64
			if err := json.Unmarshal(stdout.Bytes(), &values); err != nil {
				t.Fatalf("%q: %v", &stdout, err)
			}
			for _, d := range c.duels {
				if d.ours >= len(values) || values[d.ours] <= 0 {
					t.Errorf("%s: value %d of %v", d.name, d.ours, values)
				}
			}
		})
	}
	var stdout, stderr bytes.Buffer
	if code := command([]string{"-sample", "nothing"}, &stdout, &stderr); code != 1 || !strings.Contains(stderr.String(), `"nothing"`) {
		t.Errorf("exit code %d: %s", code, &stderr)
	}
}
