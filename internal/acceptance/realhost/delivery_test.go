package realhost

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// TestSameDeliveries checks that both hosts deliver the same queue messages to a handler: of every form, after a
// failure, and from the poison queue.
func TestSameDeliveries(t *testing.T) {
	testenv.RealHostQueues(t)
	queue := func(name, dataType string) string {
		return fmt.Sprintf(`{"type":"queueTrigger","direction":"in","name":"message","queueName":"%s","connection":"AzureWebJobsStorage"%s}`, name, dataType)
	}
	const binary = `,"dataType":"binary"`
	names := []string{"binary", "text", "failing", "failing-poison"}
	onReal, onLocal := both(t, map[string]string{"web": webFunction, "binary": queue("binary", binary), "text": queue("text", ""),
		"failing": queue("failing", binary), "poison": queue("failing-poison", binary)},
		func(t *testing.T, r recording) {
			for _, name := range names {
				testenv.OK(t, r.queues(t).CreateQueue(t.Context(), name))
			}
		})
	seen := onReal.skipProbes(t, onLocal)
	for name, test := range map[string]struct {
		queue, text string
		deliveries  int
	}{
		"text":                  {"binary", "hello, ü", 1},
		"base64":                {"binary", base64.StdEncoding.EncodeToString([]byte("hello")), 1},
		"JSON":                  {"binary", `{"DequeueCount":99,"Id":"x"}`, 1},
		"64 KiB":                {"binary", strings.Repeat("x", 64<<10), 1},
		"text as text":          {"text", "hello, ü", 1},
		"JSON as text":          {"text", `{"a":1,"DequeueCount":99,"Id":"x","nested":{"b":2},"list":[1],"myTrigger":"z","t":true,"n":null,"f":1.5,"d":"2024-01-02T03:04:05Z"}`, 1},
		"an array as text":      {"text", `[1,2]`, 1},
		"one that always fails": {"failing", "fails", maxDequeueCount + 1},
	} {
		t.Run(name, func(t *testing.T) {
			for _, h := range []hosted{onReal, onLocal} {
				testenv.Must(h.queues(t).SendText(t.Context(), test.queue, test.text, 0))(t)
			}
			for delivery := range test.deliveries {
				seen++
				want, got := onReal.requests(t, seen)[seen-1].shown(t), onLocal.requests(t, seen)[seen-1].shown(t)
				if delivery == maxDequeueCount {
					want, got = expiring(t, want, true), expiring(t, got, false)
				}
				if want != got {
					t.Errorf("delivery %d from the real host: %s\nfrom the local host: %s", delivery+1, want, got)
				}
			}
		})
	}
}

// expiring removes the expiry of a poison message from a request. On the real host, storage deletes such a message
// after seven days; the store of the local host has no expiring messages.
func expiring(t *testing.T, request string, want bool) string {
	t.Helper()
	const never = `ExpirationTime\":\"<end of time>+00:00\"`
	if ends := !strings.Contains(request, never); ends != want {
		t.Errorf("the message in the poison queue has an end: %v", ends)
	}
	return strings.Replace(request, never, `ExpirationTime\":\"<time>\"`, 1)
}

// queues returns those of the app's storage.
func (a app) queues(t *testing.T) *azure.Queues {
	t.Helper()
	store := testenv.Must(azure.NewQueues(a.account))(t)
	return store
}
