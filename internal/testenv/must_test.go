package testenv

import (
	"errors"
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
