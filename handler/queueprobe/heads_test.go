package queueprobe

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/queues"
)

// A message that nobody receives is seen to wait for as long as it is looked at; one that is received, or comes back, is not.
func TestHeads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := queues.NewMemory()
		testenv.Check(t, store.CreateQueue(t.Context(), "work"))
		h := &Heads{Queues: store, Names: []string{"missing", "work"}}
		look := func(messages int, age, stuck time.Duration) {
			t.Helper()
			heads, err := h.Look(t.Context())
			want := Head{Queue: "work", Messages: messages, Age: age, Stuck: stuck}
			if err != nil || len(heads) != 2 || heads[0] != (Head{Queue: "missing"}) || heads[1] != want {
				t.Errorf("%+v, %v; want %+v", heads, err, want)
			}
		}
		look(0, 0, 0)
		for _, delay := range []time.Duration{0, 0, time.Hour} {
			testenv.Done(t)(store.Send(t.Context(), "work", []byte("x"), delay))
		}
		look(3, 0, 0)
		time.Sleep(10 * time.Minute)
		look(3, 10*time.Minute, 10*time.Minute)
		time.Sleep(time.Minute)
		look(3, 11*time.Minute, 11*time.Minute)
		received, err := store.Receive(t.Context(), "work", 1, time.Minute)
		testenv.Check(t, err)
		look(3, 11*time.Minute, 0) // the next one
		testenv.Check(t, store.Delete(t.Context(), "work", received[0].ID, received[0].PopReceipt))
		time.Sleep(time.Minute)
		look(2, 12*time.Minute, time.Minute)
		_, err = store.Receive(t.Context(), "work", 1, time.Minute)
		testenv.Check(t, err)
		look(2, 0, 0)
		time.Sleep(2 * time.Minute) // it is back: somebody has received it meanwhile
		look(2, 14*time.Minute, 0)
		time.Sleep(time.Minute)
		look(2, 15*time.Minute, time.Minute)
		if _, err = store.Receive(t.Context(), "work", 1, time.Second); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		look(2, 16*time.Minute, 0) // it was received between two looks, and is back
	})
}
