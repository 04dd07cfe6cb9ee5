package console

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/internal/durations"
)

// schedulesCheck is the check of health that says by how much schedules are behind.
const schedulesCheck = "schedules:delay"

// healthReport is what the app says of its health.
type healthReport struct {
	Status  string                   `json:"status"`
	Version Text                     `json:"releaseId"`
	Output  Text                     `json:"output"`
	Checks  map[string][]healthCheck `json:"checks"`
}

// healthCheck is a part of it.
type healthCheck struct {
	Name     Text
	Status   string `json:"status"`
	Output   Text   `json:"output"`
	Observed any    `json:"observedValue"`
}

// empty says whether all is well.
func (h healthReport) empty() bool { return h.Status == "pass" && h.Missed() == "" }

// Word is the status for people.
func (h healthReport) Word() string {
	return map[string]string{"pass": "Healthy", "warn": "Degraded", "fail": "Unhealthy"}[h.Status]
}

// Troubles are the parts that are not well, by name.
func (h healthReport) Troubles() (all []healthCheck) {
	for _, name := range slices.Sorted(maps.Keys(h.Checks)) {
		for _, c := range h.Checks[name] {
			if c.Status != "pass" {
				c.Name = Text(name)
				all = append(all, c)
			}
		}
	}
	return all
}

// Word is the status of a part for people.
func (c healthCheck) Word() string { return healthReport{Status: c.Status}.Word() }

// Missed is by how much a schedule is behind, "" if none has missed its time.
func (h healthReport) Missed() string {
	for _, c := range h.Checks[schedulesCheck] {
		seconds, ok := c.Observed.(float64)
		if late := durations.Of(seconds * float64(time.Second)); ok && late >= lateAfter {
			return span(late)
		}
	}
	return ""
}

// askHealth asks how the app is. One that is not well answers with a report all the same.
func askHealth(ctx context.Context, v *visit) (p part[healthReport]) {
	if !v.may(access.PlatformRead) {
		p.Missing = access.PlatformRead
		return p
	}
	if err := v.api.document(ctx, "/api/health/full", &p.Data, http.StatusOK, http.StatusServiceUnavailable); err != nil {
		p.Failed = Text(err.Error())
	}
	v.seen.noteText("/api/health/full", p.Data.news()+string(p.Failed))
	return p
}

// news are the statuses, which are news when they change, without the numbers and times beside them. A schedule that is missed is news once.
func (h healthReport) news() string {
	words := []string{h.Status}
	for _, name := range slices.Sorted(maps.Keys(h.Checks)) {
		for _, c := range h.Checks[name] {
			words = append(words, name, c.Status)
		}
	}
	if h.Missed() != "" {
		words = append(words, "missed")
	}
	return strings.Join(words, "\n")
}
