package cli

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/client"
)

// A process that died with work in progress is reported when its takeover is overdue, and no other process is.
func TestLeftBehind(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	before := func(d time.Duration) time.Time { return now.Add(-d) }
	for name, tt := range map[string]struct {
		node client.NodeItem
		want string
	}{
		"at work":                 {client.NodeItem{State: "alive", InHand: 2, Seen: before(time.Minute)}, ""},
		"idle for hours":          {client.NodeItem{State: "alive", Seen: before(5 * time.Hour)}, ""},
		"died":                    {client.NodeItem{State: "alive", InHand: 2, Seen: before(time.Hour)}, "has 2 in hand and was not seen since 11-21 11:00:00"},
		"died just now":           {client.NodeItem{State: "alive", InHand: 2, Seen: before(overdueTakeover)}, ""},
		"gone":                    {client.NodeItem{State: "gone", InHand: 2, Seen: before(time.Hour)}, ""},
		"taken over from":         {client.NodeItem{State: "taken", InHand: 2, Seen: before(time.Hour), TakenAt: before(time.Hour), TakenBy: "b", Finished: true}, ""},
		"being taken over from":   {client.NodeItem{State: "taken", InHand: 2, Seen: before(time.Hour), TakenAt: before(time.Minute), TakenBy: "b"}, ""},
		"half taken over from":    {client.NodeItem{State: "taken", InHand: 2, Seen: before(time.Hour), TakenAt: before(time.Hour), TakenBy: "b"}, "is not taken over from completely: b began at 11-21 11:00:00"},
		"clocks may differ a bit": {client.NodeItem{State: "alive", InHand: 2, Seen: before(-time.Minute)}, ""},
	} {
		if got := leftBehind(tt.node, now); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestDoctorLooksAtNodes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.want(t, exitFailed, []string{"ok    nodes", "3 in a day"}, "doctor", "--storage", "what")
	for name, tt := range map[string]struct {
		status       int
		answer, want string
	}{
		"one was left behind": {200, `{"status":"Succeeded","data":{"items":[{"node":"a","state":"alive","inHand":1,"seenUtc":"2020-01-01T00:00:00Z"}]}}`, "warn  nodes"},
		"it cannot say":       {500, `{"status":"Failed","error":{"code":"InternalError","message":"oh"}}`, "fail  nodes"},
		"it lists none":       {404, `{"status":"Failed","error":{"code":"NotFound","message":"no"}}`, ""},
	} {
		w.refusing(func(rw http.ResponseWriter, r *http.Request) {
			if !strings.HasSuffix(r.URL.Path, "/nodes") {
				_, _ = rw.Write([]byte(`{"status":"pass","data":{}}`))
				return
			}
			rw.Header().Set("Content-Type", "application/json")
			rw.WriteHeader(tt.status)
			_, _ = rw.Write([]byte(tt.answer))
		})
		r := w.run(t, "doctor", "--storage", "what")
		if found := strings.Contains(r.out, " nodes"); found != (tt.want != "") || !strings.Contains(r.out, tt.want) {
			t.Errorf("%s:\n%s", name, r.out)
		}
	}
}
