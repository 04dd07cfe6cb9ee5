package durable

import (
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/internal/fuzzvalue"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
)

// A client's request is read as sent: the value of a body, the parameters of a list in any case, the place behind a
// page.
func FuzzRequests(f *testing.F) {
	fuzzvalue.Seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		s := fuzzvalue.New(data)
		value := string(s.JSON())
		body := []string{"", " ", "\n\t"}[s.Int(2)] + value + []string{"", " ", "\r\n"}[s.Int(2)]
		in := &call{http: httptest.NewRequest("POST", "/", strings.NewReader(body))}
		if got, err := in.json(true); err != nil || strings.TrimSpace(string(got)) != value {
			t.Errorf("the value %q becomes %q, %v", value, got, err)
		}
		prefix, from, to := s.Text(300), s.Time(), s.Time()
		known := []orchestrator.Status{orchestrator.Pending, orchestrator.Suspended, orchestrator.Completed, orchestrator.Failed, orchestrator.Terminated, orchestrator.Canceled}
		statuses := known[:s.Int(len(known))]
		var names []string
		for _, status := range statuses {
			names = append(names, string(status))
		}
		q := url.Values{}
		for name, text := range map[string]string{"instanceIdPrefix": prefix, "createdTimeFrom": from.Format(time.RFC3339Nano), "createdTimeTo": to.In(time.FixedZone("", 7200)).Format(time.RFC3339Nano),
			"runtimeStatus": strings.Join(names, ",")} {
			if s.Bool() {
				name = strings.ToUpper(name)
			}
			if text != "" {
				q.Set(name, text)
			}
		}
		read, err := url.ParseQuery(q.Encode())
		testenv.OK(t, err)
		got := query(read)
		gotFrom, fromOK := got.when("createdTimeFrom")
		gotTo, toOK := got.when("createdTimeTo")
		gotStatuses, all := got.statuses()
		if got.text("instanceIdPrefix") != prefix || !fromOK || !gotFrom.Equal(from) || !all || !slices.Equal(gotStatuses, statuses) {
			t.Errorf("%v becomes %q, %v, %v", read, got.text("instanceIdPrefix"), gotFrom, gotStatuses)
		}
		if toOK && !gotTo.Equal(to) || !toOK && to.Year() < 9999 {
			t.Errorf("%v becomes %v", to, gotTo)
		}
		place := s.Text(512)
		token := tokenOf(place)
		if again, err := placeOf(token); err != nil || again != place || strings.TrimFunc(token, func(r rune) bool { return r > ' ' && r < 0x7f }) != "" {
			t.Errorf("the place %q becomes %q by %q, %v", place, again, token, err)
		}
	})
}
