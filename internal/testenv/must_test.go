package testenv

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestMust(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{"went on with 7": nil, "failed": errors.New("disk full")} {
		r, ended := &recorder{TB: t}, make(chan struct{})
		go func() {
			defer close(ended)
			if got := Must(7, err)(r); got == 7 {
				r.fate = "went on with 7"
			}
		}()
		<-ended
		if r.fate != want {
			t.Errorf("with the error %v it %s, want %s", err, r.fate, want)
		}
	}
}

// comparison is a test that keeps its report.
type comparison struct{ text string }

func (c *comparison) Helper() {}

func (c *comparison) Error(args ...any) { c.text = fmt.Sprint(args...) }

func TestEqual(t *testing.T) {
	t.Parallel()
	var c comparison
	if Equal(&c, "rows", []int{1, 2}, []int{1, 2}); c.text != "" {
		t.Errorf("equal values are reported: %s", c.text)
	}
	Equal(&c, "rows", []int{1, 2}, []int{1, 3})
	if words := strings.Join(strings.Fields(c.text), " "); words != "rows (-want +got): []int{ 1, - 2, + 3, }" {
		t.Errorf("a difference is reported as %q", words)
	}
	type row struct{ A, B, C, D, E string }
	want, got := map[int]row{}, map[int]row{}
	for n := range 20 {
		want[n], got[n] = row{A: "a", E: "e"}, row{B: "b", E: fmt.Sprint(n)}
	}
	if Equal(&c, "", want, got); strings.Count(c.text, "\n") != 1+diffLines || !strings.HasSuffix(c.text, "lines more") {
		t.Errorf("a long difference is reported as %s", c.text)
	}
}
