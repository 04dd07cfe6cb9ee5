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

// schedulesCheck is the health check with the delay of schedules.
const schedulesCheck = "schedules:delay"

// healthReport is the app's report of its health.
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

// empty reports whether all is well.
func (h healthReport) empty() bool { return h.Status == "pass" && h.Missed() == "" }

// Word returns the displayed status.
func (h healthReport) Word() string {
	return map[string]string{"pass": "Healthy", "warn": "Degraded", "fail": "Unhealthy"}[h.Status]
}

// Troubles returns the parts with problems, by name.
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

// Word returns the displayed status of a part.
func (c healthCheck) Word() string { return healthReport{Status: c.Status}.Word() }

// Missed returns the delay of a schedule, "" if none has missed its time.
func (h healthReport) Missed() string {
	for _, c := range h.Checks[schedulesCheck] {
		seconds, ok := c.Observed.(float64)
		if late := durations.Of(seconds * float64(time.Second)); ok && late >= lateAfter {
			return span(late)
		}
	}
	return ""
}

// askHealth requests the app's health. An unhealthy app also answers with a report.
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

// news returns the statuses, which are news when they change, without their numbers and times. A missed schedule is
// news once.
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
