package fresh

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/internal/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAValueIsLoadedAgainWhenItIsOld(t *testing.T) {
	t.Parallel()
	now, loads, fails := time.Unix(1000, 0), 0, error(nil)
	v := &Value[int]{MaxAge: time.Minute, Timeout: time.Second, Now: func() time.Time { return now },
		Load: func(context.Context) (int, error) { loads++; return loads, fails }}
	for _, step := range []struct {
		pass time.Duration
		err  error
		want int
	}{
		{0, nil, 1}, {time.Minute - 1, nil, 1}, {1, errors.New("no"), 2}, {time.Second, nil, 2}, {time.Minute, nil, 3},
		{-time.Hour, nil, 4}, // the clock was set back
	} {
		now, fails = now.Add(step.pass), step.err
		failed := step.want == 2
		if got, err := v.Get(t.Context()); got != step.want || (err != nil) != failed {
			t.Errorf("after %v: %d, %v, want %d", step.pass, got, err, step.want)
		}
	}
}

func TestOneLoadsForAllAndNobodyWaitsLongerThanItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		loads := 0
		v := &Value[int]{MaxAge: time.Minute, Timeout: 10 * time.Second, Now: time.Now, Load: func(ctx context.Context) (int, error) {
			loads++
			<-ctx.Done()
			return loads, ctx.Err()
		}}
		hurried, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if _, err := v.Get(hurried); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		results := make(chan int)
		for range 8 {
			go func() {
				n, _ := v.Get(context.Background())
				results <- n
			}()
		}
		for range 8 {
			testenv.Equal(t, "the load", 1, <-results)
		}
		if took := time.Since(began); took != 10*time.Second || loads != 1 {
			t.Errorf("%d loads in %v", loads, took)
		}
	})
}

func TestAPanicIsAnError(t *testing.T) {
	t.Parallel()
	v := &Value[int]{MaxAge: time.Minute, Timeout: time.Second, Now: time.Now, Load: func(context.Context) (int, error) { panic("boom") }}
	for range 2 {
		if _, err := v.Get(t.Context()); err == nil || !strings.Contains(err.Error(), "boom") {
			t.Error(err)
		}
	}
}
