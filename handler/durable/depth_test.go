package durable

import (
	"net/http"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/internal/payload"
	"github.com/vibedata/roundhouse/orchestrator"
)

// A body that is as deep as may be is taken; one that is deeper is refused, with the limit, and does no harm.
func TestDeepBodies(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.begin(t, "Gate", "gate", `"in"`)
	for _, door := range []string{"/orchestrators/Hello/", "/instances/gate/raiseEvent/unread"} {
		for levels, status := range map[int]int{payload.MaxDepth: http.StatusAccepted, payload.MaxDepth + 1: http.StatusBadRequest, 9_998: http.StatusBadRequest} {
			target := base + door
			if strings.HasSuffix(door, "/") {
				target += "deep"
			}
			rec := b.send(t, http.MethodPost, target, strings.Repeat("[", levels)+strings.Repeat("]", levels), "Content-Type", "application/json")
			if rec.Code != status && rec.Code != http.StatusConflict || status == http.StatusBadRequest && !strings.Contains(rec.Body.String(), "500 levels") {
				t.Errorf("%s, %d levels: %d %.300s", door, levels, rec.Code, rec.Body)
			}
			b.drive(t)
		}
	}
	for _, path := range []string{"/instances", "/instances/gate", "/instances/deep?showHistory=true"} {
		if rec := b.send(t, http.MethodGet, base+path, ""); rec.Code >= http.StatusBadRequest {
			t.Errorf("%s: %d %.300s", path, rec.Code, rec.Body)
		}
	}
	if rec := b.send(t, http.MethodPost, base+"/instances/gate/terminate", ""); rec.Code != http.StatusAccepted {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	b.drive(t)
	if s, err := b.runtime.Status(t.Context(), "gate"); err != nil || s.Status != orchestrator.Terminated {
		t.Errorf("%s, %v", s.Status, err)
	}
}
