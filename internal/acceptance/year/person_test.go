package year

import (
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"
)

// person is an operator with a morning routine: they retry dead letters once everything works, and answer tasks. They
// never confirm that a credential may be removed.
type person struct {
	letters map[string]bool // seen dead letters, by app and row
	asked   map[string]bool // seen tasks, by app and id
	seen    []notice
}

// notice is the time at which the operator saw something first.
type notice struct {
	at   time.Time
	what string
}

// page is a page of a list of the API.
type page struct {
	Data struct {
		Items             []map[string]any `json:"items"`
		ContinuationToken string           `json:"continuationToken"`
	} `json:"data"`
}

// list reads a whole list of the API.
func list(t testing.TB, s *site, path string, query url.Values) []map[string]any {
	t.Helper()
	var all []map[string]any
	for {
		status, body := s.Do(http.MethodGet, path+"?"+query.Encode(), "")
		if status != http.StatusOK {
			t.Fatalf("GET %s: %d %s", path, status, body)
		}
		p := decode[page](t, []byte(body))
		all = append(all, p.Data.Items...)
		if p.Data.ContinuationToken == "" {
			return all
		}
		query.Set("continuationToken", p.Data.ContinuationToken)
	}
}

// look is a morning's work.
func (p *person) look(t testing.TB, s *site) {
	t.Helper()
	work := map[string]bool{}
	for _, letter := range list(t, s, "/api/dlq", url.Values{"status": {"Pending"}, "limit": {"100"}}) {
		engine, row, id := letter["engine"].(string), letter["rowKey"].(string), letter["correlationId"].(string)
		key := engine + " " + id
		if message, ok := letter["messageId"].(string); ok && engine == "outbox" {
			key = engine + " " + message
		}
		if work[key] {
			t.Errorf("%s: two letters wait for one piece of work, %s: %v", s.part, key, letter)
		}
		work[key] = true
		p.notice(p.letters, s, engine+" "+row)
		if s.outages.any() {
			continue
		}
		if status, body := s.Do(http.MethodPost, "/api/dlq/"+engine+"/"+url.PathEscape(row)+"/retry", ""); status/100 != 2 {
			t.Errorf("retry %s %s: %d %s", engine, row, status, body)
		}
	}
	runs := map[string]bool{}
	for _, status := range []string{"Created", "Assigned"} {
		for _, task := range list(t, s, "/api/tasks", url.Values{"status": {status}, "limit": {"100"}}) {
			run := task["orchestrationId"].(string)
			if runs[run] {
				t.Errorf("%s asks twice at once: %v", run, task)
			}
			runs[run] = true
			p.notice(p.asked, s, run+" "+task["taskId"].(string))
		}
	}
}

func (p *person) notice(known map[string]bool, s *site, what string) {
	if what = string(s.part) + ": " + what; !known[what] {
		p.seen = append(p.seen, notice{time.Now(), what})
	}
	known[what] = true
}

// long is an outage that outlasts all attempts: the affected runs are dead letters, or wait with a task.
const long = 3 * day

// checkSeen makes sure that the operator has seen every long outage.
func (p *person) checkSeen(t testing.TB, all outages) {
	t.Helper()
	for _, o := range all {
		if o.to.Sub(o.from) < long || !o.part.asked() {
			continue
		}
		known := slices.ContainsFunc(p.seen, func(n notice) bool { return n.at.After(o.from) && n.at.Before(o.to.Add(2*day)) })
		if !known {
			t.Errorf("nobody was told that %s was out of order from %s to %s", o.part, o.from, o.to)
		}
	}
}

// checkDone makes sure that no work is left.
func (p *person) checkDone(t testing.TB, s *site) {
	t.Helper()
	for _, letter := range list(t, s, "/api/dlq", url.Values{"status": {"Pending"}}) {
		t.Errorf("%s: still dead: %v", s.part, letter)
	}
	for _, status := range []string{"Created", "Assigned"} {
		for _, task := range list(t, s, "/api/tasks", url.Values{"status": {status}}) {
			t.Errorf("%s: still asked: %v", s.part, task)
		}
	}
	for _, status := range []string{"pending", "failed"} {
		for _, event := range list(t, s, "/api/workflow/outbox", url.Values{"status": {status}}) {
			t.Errorf("%s: not delivered: %v", s.part, event)
		}
	}
}
