package azure_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/internal/storage"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/queues"
)

// A Send is repeated only while nothing was applied: its request is never sent again once the outcome is unknown.
func TestRepeatedSends(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answers  []int // 0 closes the connection
		single   bool
		want     error
		requests int32
	}{
		"busy":                 {answers: []int{503, 429, 201}, requests: 3},
		"busy for too long":    {answers: []int{503, 503, 503, 503, 201}, want: queues.ErrThrottled, requests: 4},
		"busy, single try":     {answers: []int{503, 201}, single: true, want: queues.ErrThrottled, requests: 1},
		"no answer":            {answers: []int{0, 201}, want: queues.ErrOutcomeUnknown, requests: 1},
		"server error":         {answers: []int{500, 201}, want: queues.ErrOutcomeUnknown, requests: 1},
		"no answer after busy": {answers: []int{503, 0, 201}, want: queues.ErrOutcomeUnknown, requests: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				switch status := tt.answers[requests.Add(1)-1]; status {
				case 0:
					panic(http.ErrAbortHandler)
				case 201:
					w.WriteHeader(status)
					_, _ = fmt.Fprint(w, `<QueueMessagesList><QueueMessage><MessageId>m</MessageId></QueueMessage></QueueMessagesList>`)
				default:
					w.Header().Set("Retry-After-Ms", "1")
					w.WriteHeader(status)
				}
			}))
			t.Cleanup(server.Close)
			ctx := t.Context()
			if tt.single {
				ctx = storage.WithSingleTry(ctx)
			}
			_, err := newQueues(t, server.URL).Send(ctx, "things", []byte("x"), 0)
			if !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
				t.Errorf("send: %v, want %v", err, tt.want)
			}
			if n := requests.Load(); n != tt.requests {
				t.Errorf("%d requests, want %d", n, tt.requests)
			}
		})
	}
}

// A service that cannot be reached has applied nothing.
func TestSendToNoServer(t *testing.T) {
	t.Parallel()
	_, err := newQueues(t, fmt.Sprintf("http://127.0.0.1:%d", testenv.Port(t))).Send(storage.WithSingleTry(t.Context()), "things", []byte("x"), 0)
	if !errors.Is(err, queues.ErrThrottled) || errors.Is(err, queues.ErrOutcomeUnknown) {
		t.Errorf("send: %v, want %v", err, queues.ErrThrottled)
	}
}

func newQueues(t *testing.T, url string) *azure.Queues {
	t.Helper()
	a := testenv.Must(azure.FromConnectionString(fmt.Sprintf("AccountName=devstoreaccount1;AccountKey=a2V5;TableEndpoint=%[1]s/t;QueueEndpoint=%[1]s/q;BlobEndpoint=%[1]s/b", url)))(t)
	t.Cleanup(a.CloseIdleConnections)
	return testenv.Must(azure.NewQueues(a))(t)
}
