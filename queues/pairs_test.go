package queues

import (
	"testing"
	"time"
	"unicode/utf8"

	"github.com/vibedata/roundhouse/internal/fuzzvalue"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// A UTF-8 body is read as it was sent; any other body is read as the stored text.
func FuzzBodies(f *testing.F) {
	fuzzvalue.Seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		s := fuzzvalue.New(data)
		body := []byte(s.Text(MaxBody + 2))
		if s.Bool() {
			body = s.Bytes(64)
		}
		q := NewMemory()
		testenv.OK(t, q.CreateQueue(t.Context(), "bodies"))
		_, err := q.Send(t.Context(), "bodies", body, 0)
		if fits := len(body) > 0 && len(body) <= MaxBody; (err == nil) != fits {
			t.Fatalf("%d bytes: %v", len(body), err)
		}
		received, receiveErr := q.Receive(t.Context(), "bodies", 1, time.Minute)
		if receiveErr != nil || len(received) == 0 != (err != nil) {
			t.Fatalf("%d messages, %v", len(received), receiveErr)
		}
		if err != nil {
			return
		}
		want := string(body)
		if !utf8.Valid(body) {
			want = encode(body)
		}
		if got := Decode(received[0].Text); string(got) != want {
			t.Errorf("%q becomes %q", body, got)
		}
	})
}
