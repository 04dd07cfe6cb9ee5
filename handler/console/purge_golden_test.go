package console

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/vibedata/roundhouse/handler/access"
)

// The pages that purge are as their golden files have them.
func TestGoldenPurge(t *testing.T) {
	t.Parallel()
	one, evilOne := orchestrationLink(runID)+"/force-purge", orchestrationLink(Text(evil+"/..%2F"))+"/force-purge"
	damaged := nothing().with(answers{runsAPI + "/" + runID: refusal{500, damagedCode, "What is stored of the orchestration is damaged."}})
	few := nothing().with(answers{runsAPI: list(failedRun(), runData(nil), runData(map[string]any{"status": "Completed", "endedAtUtc": "2026-11-26T13:59:59Z"}))})
	for name, test := range map[string]struct {
		api    answers
		target string
		status int
	}{
		"purge_empty":        {nothing(), purgePath, 200},
		"purge_typical":      {few, purgePath + "?orchestrator=hmac&status=Failed&fromDate=2026-11-01", 200},
		"purge_before":       {few, purgePath + "?endedBefore=2026-11-26T13:45:00Z", 200},
		"purge_many":         {runs(failedRun()), purgePath, 200},
		"purge_reader":       {few.with(answers{"/api/me": reader()}), purgePath, 200},
		"purge_tag":          {few, purgePath + "?tag=order-12", 400},
		"purge_wrong":        {few, purgePath + "?endedBefore=soon", 400},
		"purge_refused":      {few.with(answers{runsAPI: refusal{400, "InvalidParameter", "toDate: " + evil}}), purgePath + "?toDate=x", 400},
		"purge_hostile":      {few, purgePath + "?" + url.Values{"orchestrator": {evil}, "idPrefix": {"a&b=c"}, "status": {evil}}.Encode(), 200},
		"force_typical":      {damaged, one, 200},
		"force_reader":       {damaged.with(answers{"/api/me": reader()}), one, 200},
		"force_running":      {runs(runData(nil)), one, 200},
		"force_hostile":      {hostileRuns(), evilOne, 200},
		"orchestration_torn": {damaged, orchestrationLink(runID), 500},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden(t, name, test.api, test.target, test.status)
		})
	}
}

// What the API has against a forced purge is said beside the form, with the reason that was entered.
func TestGoldenForceRefused(t *testing.T) {
	t.Parallel()
	a := runs(runData(nil)).with(answers{runsAPI + "/" + runID: refusal{400, "InvalidParameter", "reason: A forced purge needs a reason."}})
	rec := send(t, newConsole(t, a, access.Control{EasyAuth: true}), orchestrationLink(runID)+"/force-purge", url.Values{"reason": {"no <b> backup"}})
	if rec.Code != http.StatusBadRequest {
		t.Errorf("%d", rec.Code)
	}
	compare(t, "force_refused", rec.Body.Bytes())
}
