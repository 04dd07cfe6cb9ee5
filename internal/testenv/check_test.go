package testenv

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// failures is a test that keeps what it is told to fail with.
type failures struct{ texts []string }

func (f *failures) Helper() {}

func (f *failures) Errorf(format string, args ...any) {
	f.texts = append(f.texts, fmt.Sprintf(format, args...))
}

func (f *failures) Fatal(args ...any) {
	f.texts = append(f.texts, fmt.Sprint(args...))
	runtime.Goexit()
}

func TestCheckAndDiff(t *testing.T) {
	t.Parallel()
	long, other := map[int]int{}, map[int]int{}
	for n := range 100 {
		long[n], other[n] = n, n+1
	}
	oh := errors.New("oh")
	for name, tt := range map[string]struct {
		do   func(f *failures)
		want string // in the failure; "" for none
	}{
		"no error":      {func(f *failures) { Check(f, nil); Done(f)(1, nil) }, ""},
		"an error":      {func(f *failures) { Check(f, oh); f.Errorf("it continues") }, "oh"},
		"with a value":  {func(f *failures) { Done(f)(1, oh); f.Errorf("it continues") }, "oh"},
		"no difference": {func(f *failures) { Diff(f, long, long, "") }, ""},
		"a difference":  {func(f *failures) { Diff(f, 1, 2, "run %d", 7) }, "run 7 (-want +got):\n"},
		"without words": {func(f *failures) { Diff(f, 1, 2, "") }, "(-want +got):\n"},
		"a long one":    {func(f *failures) { Diff(f, long, other, "all") }, "more lines"},
	} {
		f, ended := &failures{}, make(chan struct{})
		go func() {
			defer close(ended)
			tt.do(f)
		}()
		<-ended
		switch text := strings.Join(f.texts, "\n"); {
		case tt.want == "" && text != "", !strings.Contains(text, tt.want), len(f.texts) > 1, strings.Count(text, "\n") > 29:
			t.Errorf("%s: %q, want %q", name, text, tt.want)
		}
	}
}
