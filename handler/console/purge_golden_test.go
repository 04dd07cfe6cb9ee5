package console

import "net/url"

// purgePages are the pages of this file.
func purgePages() map[string]shown {
	one, evilOne := orchestrationLink(runID)+"/force-purge", orchestrationLink(Text(evil+"/..%2F"))+"/force-purge"
	damaged := nothing().with(answers{runsAPI + "/" + runID: refusal{500, damagedCode, "What is stored of the orchestration is damaged."}})
	few := nothing().with(answers{runsAPI: list(failedRun(), runData(nil), runData(map[string]any{"status": "Completed", "endedAtUtc": "2026-11-26T13:59:59Z"}))})
	return map[string]shown{
		"purge_empty":   at(nothing(), purgePath, 200),
		"purge_typical": at(few, purgePath+"?orchestrator=hmac&status=Failed&fromDate=2026-11-01", 200),
		"purge_before":  at(few, purgePath+"?endedBefore=2026-11-26T13:45:00Z", 200),
		"purge_many":    at(runs(failedRun()), purgePath, 200),
		"purge_reader":  at(few.with(answers{"/api/me": reader()}), purgePath, 200),
		"purge_tag":     at(few, purgePath+"?tag=order-12", 400),
		"purge_wrong":   at(few, purgePath+"?endedBefore=soon", 400),
		"purge_refused": at(few.with(answers{runsAPI: refusal{400, "InvalidParameter", "toDate: " + evil}}), purgePath+"?toDate=x", 400),
		"purge_hostile": at(few, purgePath+"?"+url.Values{"orchestrator": {evil}, "idPrefix": {"a&b=c"}, "status": {evil}}.Encode(), 200),
		"force_typical": at(damaged, one, 200),
		"force_reader":  at(damaged.with(answers{"/api/me": reader()}), one, 200),
		"force_running": at(runs(runData(nil)), one, 200),
		"force_hostile": at(hostileRuns(), evilOne, 200),
		"force_refused": at(runs(runData(nil)).with(answers{runsAPI + "/" + runID: refusal{400, "InvalidParameter", "reason: A forced purge needs a reason."}}), one, 400).
			sends(url.Values{"reason": {"no <b> backup"}}),
		"orchestration_torn": at(damaged, orchestrationLink(runID), 500),
	}
}
