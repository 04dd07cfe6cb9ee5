package localhost

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/queues"
)

var errBroken = errors.New("broken on purpose")

// elapse lets the time of a synctest bubble pass.
func elapse(d time.Duration) { <-time.After(d) }

// observer collects invocations.
type observer struct {
	mu   sync.Mutex
	seen []Invocation
}

func (o *observer) observe(i Invocation) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen = append(o.seen, i)
}

// outcomes returns the reported invocations, one per line.
func (o *observer) outcomes() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []string
	for _, i := range o.seen {
		out = append(out, fmt.Sprintf("%d %s", i.DequeueCount, i.Outcome))
	}
	return out
}

// listening starts a listener on queue "work" of a memory store, inside a synctest bubble. It stops with the test.
func listening(t *testing.T, change func(*listener)) (store *queues.Memory, o *observer, stop func()) {
	t.Helper()
	store, o = queues.NewMemory(), &observer{}
	l := &listener{
		function: "fn", queue: "work", store: store, visibility: 10 * time.Minute, shortest: 100 * time.Millisecond,
		options: queueOptions{batchSize: 16, newThreshold: 8, maxDequeue: 5, maxPolling: time.Minute, retryVisibility: 30 * time.Second},
		run:     func(context.Context, queueDelivery) (string, error) { return "id", nil },
		observe: o.observe, now: time.Now, log: slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(l)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		l.listen(ctx)
		close(done)
	}()
	stop = func() {
		cancel()
		<-done
	}
	t.Cleanup(stop)
	return store, o, stop
}

func send(t *testing.T, store *queues.Memory, queue string, texts ...string) {
	t.Helper()
	testenv.OK(t, store.CreateQueue(t.Context(), queue))
	for _, text := range texts {
		testenv.Must(store.SendText(t.Context(), queue, text, 0))(t)
	}
}

func length(t *testing.T, store queues.Store, queue string) int {
	t.Helper()
	n := testenv.Must(store.Length(t.Context(), queue))(t)
	return n
}

func TestMessageThatSucceedsIsDeleted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bodies := make(chan string, 1)
		store, o, _ := listening(t, func(l *listener) {
			l.run = func(_ context.Context, d queueDelivery) (string, error) {
				bodies <- string(d.body)
				return "id", nil
			}
		})
		// The queue does not exist yet: the listener keeps polling.
		elapse(time.Hour)
		send(t, store, "work", "aGVsbG8=")
		if got := <-bodies; got != "aGVsbG8=" {
			t.Errorf("body %q, want the text as it is in the queue", got)
		}
		synctest.Wait()
		if n := length(t, store, "work"); n != 0 {
			t.Errorf("%d messages left", n)
		}
		testenv.Equal(t, "", []string{"1 succeeded"}, o.outcomes())
	})
}

func TestMessageThatFailsComesAgainAndIsPoisoned(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var times []time.Time
		store, o, _ := listening(t, func(l *listener) {
			l.run = func(context.Context, queueDelivery) (string, error) {
				times = append(times, time.Now())
				return "id", errBroken
			}
		})
		send(t, store, "work", "not base64!")
		elapse(10 * time.Minute)
		synctest.Wait()
		want := []string{"1 failed", "2 failed", "3 failed", "4 failed", "5 poisoned"}
		testenv.Equal(t, "", want, o.outcomes())
		for i := 1; i < len(times); i++ {
			if gap := times[i].Sub(times[i-1]); gap < 30*time.Second || gap > 91*time.Second {
				t.Errorf("attempt %d came after %v, want 30 s and a poll", i+1, gap)
			}
		}
		if n := length(t, store, "work"); n != 0 {
			t.Errorf("%d messages left", n)
		}
		moved, err := store.Receive(t.Context(), "work-poison", 32, time.Minute)
		if err != nil || len(moved) != 1 || moved[0].Text != "not base64!" {
			t.Errorf("poison queue has %v, %v", moved, err)
		}
	})
}

func TestMessageOverItsAttemptsIsNotRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := queues.NewMemory()
		send(t, store, "work", "text")
		for range 5 { // a host that dies each time
			testenv.Must(store.Receive(t.Context(), "work", 1, time.Second))(t)
			elapse(2 * time.Second)
		}
		_, o, _ := listening(t, func(l *listener) {
			l.store = store
			l.run = func(context.Context, queueDelivery) (string, error) {
				t.Error("the function ran")
				return "", nil
			}
		})
		synctest.Wait()
		testenv.Equal(t, "", []string{"6 poisoned"}, o.outcomes())
		if n := length(t, store, "work-poison"); n != 1 {
			t.Errorf("%d poison messages", n)
		}
	})
}

func TestPoisonQueueHasNoPoisonQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, o, _ := listening(t, func(l *listener) {
			l.queue = "work-poison"
			l.run = func(context.Context, queueDelivery) (string, error) { return "id", errBroken }
		})
		send(t, store, "work-poison", "text")
		elapse(9 * time.Minute)
		testenv.Equal(t, "", []string{"1 failed"}, o.outcomes())
		// It is hidden for the visibility time; without attempts left it does not run again, and stays.
		elapse(2 * time.Hour)
		seen := o.outcomes()
		if len(seen) < 6 || seen[1] != "2 failed" || length(t, store, "work-poison") != 1 {
			t.Errorf("outcomes %v, %d left", seen, length(t, store, "work-poison"))
		}
		if _, err := store.Length(t.Context(), "work-poison-poison"); !errors.Is(err, queues.ErrNotFound) {
			t.Errorf("a poison queue of the poison queue: %v", err)
		}
	})
}

func TestPoisonQueueNames(t *testing.T) {
	t.Parallel()
	for queue, want := range map[string]string{
		"work": "work-poison", "work-poison": "", strings.Repeat("q", 56): strings.Repeat("q", 56) + "-poison", strings.Repeat("q", 57): "",
	} {
		if got := poisonQueue(queue); got != want {
			t.Errorf("poisonQueue(%q) = %q, want %q", queue, got, want)
		}
	}
}

func TestBase64Encoding(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bodies := make(chan string, 2)
		store, o, _ := listening(t, func(l *listener) {
			l.options.base64 = true
			l.run = func(_ context.Context, d queueDelivery) (string, error) {
				bodies <- string(d.body)
				return "id", nil
			}
		})
		send(t, store, "work", base64.StdEncoding.EncodeToString([]byte("hello")), "{raw}")
		if got := <-bodies; got != "hello" {
			t.Errorf("body %q, want it decoded", got)
		}
		elapse(time.Second)
		moved, err := store.Receive(t.Context(), "work-poison", 32, time.Minute)
		if err != nil || len(moved) != 1 || moved[0].Text != "{raw}" {
			t.Errorf("poison queue has %v, %v", moved, err)
		}
		if len(bodies) != 0 || len(o.outcomes()) != 2 {
			t.Errorf("outcomes %v, and %d more bodies", o.outcomes(), len(bodies))
		}
	})
}

func TestConcurrency(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ batch, threshold, want int }{{16, 8, 24}, {1, 0, 1}, {4, 3, 7}, {32, 32, 64}} {
		t.Run(fmt.Sprintf("%d and %d", test.batch, test.threshold), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				var mu sync.Mutex
				running, most := 0, 0
				store := queues.NewMemory()
				for range 100 {
					send(t, store, "work", "text")
				}
				_, o, _ := listening(t, func(l *listener) {
					l.store = store
					l.options.batchSize, l.options.newThreshold = test.batch, test.threshold
					l.run = func(context.Context, queueDelivery) (string, error) {
						mu.Lock()
						running++
						most = max(most, running)
						mu.Unlock()
						<-release
						mu.Lock()
						running--
						mu.Unlock()
						return "id", nil
					}
				})
				elapse(time.Minute)
				// It receives again once at most the threshold run.
				for range test.batch - test.threshold {
					release <- struct{}{}
				}
				elapse(time.Minute)
				mu.Lock()
				if running != test.want {
					t.Errorf("%d run at a time, want %d", running, test.want)
				}
				mu.Unlock()
				close(release)
				elapse(time.Minute)
				if len(o.outcomes()) != 100 || most > test.want {
					t.Errorf("%d ran, %d at a time", len(o.outcomes()), most)
				}
			})
		})
	}
}

func TestMessageIsKeptHiddenWhileItRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, o, _ := listening(t, func(l *listener) {
			l.run = func(context.Context, queueDelivery) (string, error) {
				elapse(time.Hour)
				return "id", nil
			}
		})
		send(t, store, "work", "text")
		elapse(59 * time.Minute)
		testenv.Equal(t, "", []string(nil), o.outcomes())
		elapse(2 * time.Minute)
		testenv.Equal(t, "", []string{"1 succeeded"}, o.outcomes())
		if n := length(t, store, "work"); n != 0 {
			t.Errorf("%d messages left: the receipt of the last renewal was not used", n)
		}
	})
}

// unsteady is the memory store with renewals that fail for a while.
type unsteady struct {
	*queues.Memory
	mu    sync.Mutex
	fails int
	tries []time.Time
}

func (u *unsteady) Renew(ctx context.Context, queue, id, receipt string, visibility time.Duration) (string, error) {
	u.mu.Lock()
	u.tries = append(u.tries, time.Now())
	fail := len(u.tries) <= u.fails
	u.mu.Unlock()
	if fail {
		return "", queues.ErrThrottled
	}
	return u.Memory.Renew(ctx, queue, id, receipt, visibility)
}

func TestFailedRenewalIsRepeatedSooner(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &unsteady{Memory: queues.NewMemory(), fails: 2}
		begin := time.Now()
		_, o, _ := listening(t, func(l *listener) {
			l.store = store
			l.run = func(context.Context, queueDelivery) (string, error) {
				elapse(14 * time.Minute)
				return "id", nil
			}
		})
		send(t, store.Memory, "work", "text")
		elapse(20 * time.Minute)
		want := []time.Duration{5 * time.Minute, 7*time.Minute + 30*time.Second, 8*time.Minute + 45*time.Second, 13*time.Minute + 45*time.Second}
		var got []time.Duration
		for _, at := range store.tries {
			got = append(got, at.Sub(begin).Truncate(time.Second))
		}
		testenv.Equal(t, "", want, got)
		testenv.Equal(t, "", []string{"1 succeeded"}, o.outcomes())
	})
}

// held is the memory store whose Receive takes messages and then waits, like a slow network.
type held struct {
	*queues.Memory
	taken, release chan struct{}
}

func (h *held) Receive(ctx context.Context, queue string, limit int, visibility time.Duration) ([]queues.Message, error) {
	messages, err := h.Memory.Receive(ctx, queue, limit, visibility)
	if len(messages) > 0 {
		h.taken <- struct{}{}
		<-h.release
	}
	return messages, errors.Join(err, ctx.Err())
}

func TestMessageReceivedWhileStoppingIsReleased(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &held{queues.NewMemory(), make(chan struct{}), make(chan struct{})}
		_, o, stop := listening(t, func(l *listener) { l.store = store })
		send(t, store.Memory, "work", "text")
		<-store.taken
		stopped := make(chan struct{})
		go func() {
			stop()
			close(stopped)
		}()
		synctest.Wait()
		close(store.release)
		<-stopped
		if len(o.outcomes()) != 0 {
			t.Errorf("it ran: %v", o.outcomes())
		}
		again, err := store.Memory.Receive(t.Context(), "work", 1, time.Second)
		if err != nil || len(again) != 1 {
			t.Errorf("it is not visible: %v, %v", again, err)
		}
	})
}

func TestStoppingWaitsForRunningMessages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		entered, release := make(chan struct{}), make(chan struct{})
		store, o, stop := listening(t, func(l *listener) {
			l.run = func(context.Context, queueDelivery) (string, error) {
				close(entered)
				<-release
				return "id", nil
			}
		})
		send(t, store, "work", "text")
		<-entered
		stopped := make(chan struct{})
		go func() {
			stop()
			close(stopped)
		}()
		synctest.Wait()
		select {
		case <-stopped:
			t.Error("it stopped while a message was running")
		default:
		}
		close(release)
		<-stopped
		if diff := cmp.Diff([]string{"1 succeeded"}, o.outcomes()); diff != "" || length(t, store, "work") != 0 {
			t.Errorf("%s, %d left", diff, length(t, store, "work"))
		}
	})
}
