package durable

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/internal/testenv"
)

// row is a request and the extension's answer.
type row struct {
	name, method, path, body string
	headers                  []string
	status                   int
	// message is in the body of an error; "-" is an empty body.
	message string
	check   func(t *testing.T, b *bench, rec *httptest.ResponseRecorder)
}

// contract returns the table of the extension's API, row by row, with every status code.
func contract() []row {
	const asJSON = "application/json"
	instance := func(id string) string { return "/instances/" + id }
	rows := []row{
		{name: "start", method: "POST", path: "/orchestrators/Hello", body: `"you"`, status: 202, check: isCheckStatus("")},
		{name: "start by id", method: "POST", path: "/orchestrators/Hello/mine?code=a%2Bb&taskHub=hub&connection=c", body: `"you"`, status: 202, check: isCheckStatus("mine")},
		{name: "start without input", method: "POST", path: "/orchestrators/Gate/mine", status: 202, check: hasInput("mine", "null")},
		{name: "start in the place of one that ended", method: "POST", path: "/orchestrators/Gate/Completed", body: `"x"`, status: 202, check: hasInput("Completed", `"x"`)},
		{name: "start in the place of one that goes on", method: "POST", path: "/orchestrators/Gate/Running", status: 409, message: "exists already"},
		{name: "start of nothing", method: "POST", path: "/orchestrators/Nothing", status: 400, message: "One or more of the arguments submitted is incorrect"},
		{name: "start with bad JSON", method: "POST", path: "/orchestrators/Hello", body: `{"a":`, status: 400, message: "Invalid JSON content"},
		{name: "start with more than JSON", method: "POST", path: "/orchestrators/Hello", body: `1 2`, status: 400, message: "Invalid JSON content"},
		{name: "start by an id with @", method: "POST", path: "/orchestrators/Hello/@x", status: 400, message: "must not start with @"},
		{name: "start by an id with a slash", method: "POST", path: "/orchestrators/Hello/a%2Fb", status: 400, message: "must not contain"},
		{name: "start by a long id", method: "POST", path: "/orchestrators/Hello/" + strings.Repeat("x", 257), status: 400, message: "256"},
		{name: "start and wait less than a look", method: "POST", path: "/orchestrators/Hello?timeout=1&pollingInterval=2", status: 400, message: "bigger than retry timeout"},
		{name: "start and wait backwards", method: "POST", path: "/orchestrators/Hello?timeout=-1&pollingInterval=-2", status: 400, message: "negative"},
		{name: "start of much", method: "POST", path: "/orchestrators/Hello", body: `"` + strings.Repeat("x", maxBody) + `"`, status: 413, message: "bytes"},
		{name: "start by GET", method: "GET", path: "/orchestrators/Hello", status: 404, message: "-"},

		{name: "list", method: "GET", path: "/instances", status: 200, check: lists("Canceled", "Completed", "Failed", "Pending", "Running", "Suspended", "Terminated")},
		{name: "list with a slash", method: "GET", path: "/instances/?runtimeStatus=Running", status: 200, check: lists("Running")},
		{name: "list by statuses", method: "GET", path: "/Instances?RuntimeStatus=Failed,Terminated&runtimeStatus=Canceled", status: 200, check: lists("Canceled", "Failed", "Terminated")},
		{name: "list by a status that is none", method: "GET", path: "/instances?runtimeStatus=Failed,Nothing", status: 200, check: lists("Failed")},
		{name: "list by prefix", method: "GET", path: "/instances?instanceIdPrefix=C", status: 200, check: lists("Canceled", "Completed")},
		{name: "list by time", method: "GET", path: "/instances?createdTimeFrom=2999-01-01T00:00:00Z", status: 200, check: lists()},
		{name: "list before a time", method: "GET", path: "/instances?createdTimeTo=2001-01-01", status: 200, check: lists()},
		{name: "list by what is no time", method: "GET", path: "/instances?createdTimeFrom=x&top=x&showInput=x&instanceIdPrefix=F", status: 200, check: lists("Failed")},
		{name: "list without input", method: "GET", path: "/instances?showInput=false&runtimeStatus=Running", status: 200, check: func(t *testing.T, _ *bench, rec *httptest.ResponseRecorder) {
			if got := body[[]shown](t, rec); string(got[0].Input) != "null" {
				t.Errorf("input %s", got[0].Input)
			}
		}},
		{name: "list by a bad continuation", method: "GET", path: "/instances", headers: []string{continuationHeader, "x"}, status: 400, message: "arguments"},
		{name: "list by PUT", method: "PUT", path: "/instances", status: 404, message: "-"},

		{name: "purge by filter", method: "DELETE", path: "/instances?createdTimeFrom=2020-01-01T00:00:00Z&runtimeStatus=Failed,Completed,Running", status: 200, check: purges(2, "Completed", "Failed")},
		{name: "purge all", method: "DELETE", path: "/instances?createdTimeFrom=2020-01-01", status: 200, check: purges(4, "Canceled", "Completed", "Failed", "Terminated")},
		{name: "purge since ever", method: "DELETE", path: "/instances?createdTimeFrom=0001-01-01T00:00:00Z&createdTimeTo=1971-01-01T00:00:00Z", status: 404, message: "-"},
		{name: "purge since ever, with a fraction", method: "DELETE", path: "/instances?createdTimeFrom=0001-01-01T00:00:00.000000", status: 200, check: purges(4, "Canceled", "Completed", "Failed", "Terminated")},
		{name: "purge nothing", method: "DELETE", path: "/instances?createdTimeFrom=2999-01-01", status: 404, message: "-"},
		{name: "purge without a time", method: "DELETE", path: "/instances", status: 400, check: func(t *testing.T, _ *bench, rec *httptest.ResponseRecorder) {
			testenv.Equal(t, "what it answers", "Please provide value for 'createdTimeFrom' parameter.", body[string](t, rec))
		}},
		{name: "purge by a status that is none", method: "DELETE", path: "/instances?createdTimeFrom=2020-01-01&runtimeStatus=Nothing", status: 400, message: "arguments", check: purges(-1)},
		{name: "purge to what is no time", method: "DELETE", path: "/instances?createdTimeFrom=2020-01-01&createdTimeTo=x", status: 400, message: "arguments", check: purges(-1)},
		{name: "purge one", method: "DELETE", path: instance("Failed"), status: 200, check: purges(1, "Failed")},
		{name: "purge one that goes on", method: "DELETE", path: instance("Running"), status: 200, check: purges(0)},
		{name: "purge nobody", method: "DELETE", path: instance("nobody"), status: 404, message: "-"},

		{name: "status of nobody", method: "GET", path: instance("nobody"), status: 404, message: "-"},
		{name: "status of a long id", method: "GET", path: instance(strings.Repeat("x", 401)), status: 404, message: "-"},
		{name: "status of a failure", method: "GET", path: instance("Failed"), status: 200, check: shows("Failed", `"nobody"`, `"activity greet (attempt 1): there is nobody"`, "null")},
		{name: "status of a failure as such", method: "GET", path: instance("Failed") + "?returnInternalServerErrorOnFailure=true", status: 500, check: shows("Failed", `"nobody"`, `"activity greet (attempt 1): there is nobody"`, "null")},
		{name: "status of a success, failures as such", method: "GET", path: instance("Completed") + "?returnInternalServerErrorOnFailure=true", status: 200, check: shows("Completed", `"you"`, `"hello you"`, "null")},
		{name: "status of one that was terminated", method: "GET", path: instance("Terminated"), status: 200, check: shows("Terminated", `"in"`, `"enough"`, `"closed"`)},
		{name: "start in a version that nobody has", method: "POST", path: "/orchestrators/Hello?version=9", status: 400, message: "arguments"},
		{name: "status without input", method: "GET", path: instance("Completed") + "?showInput=false", status: 200, check: shows("Completed", "null", `"hello you"`, "null")},
		{name: "status while it goes on, without input", method: "GET", path: instance("Running") + "?showInput=False", status: 202, check: shows("Running", "null", "null", `"closed"`)},
		{name: "status of one that was canceled", method: "GET", path: instance("Canceled"), status: 200, check: shows("Canceled", `"in"`, `"the orchestration was canceled"`, `"closed"`)},
		{name: "status by POST", method: "POST", path: instance("Running"), status: 404, message: "-"},

		{name: "raise", method: "POST", path: instance("Running") + "/raiseEvent/open", body: `"guest"`, headers: []string{"Content-Type", asJSON + "; charset=utf-8"}, status: 202, message: "-", check: reaches("Running", "Completed")},
		{name: "raise in other letters", method: "POST", path: instance("Running") + "/RaiseEvent/OPEN", body: `"nobody"`, headers: []string{"Content-Type", "Application/JSON"}, status: 202, message: "-", check: reaches("Running", "Failed")},
		{name: "raise for a suspended one", method: "POST", path: instance("Suspended") + "/raiseEvent/open", body: `"guest"`, headers: []string{"Content-Type", asJSON}, status: 202, message: "-", check: reaches("Suspended", "Suspended")},
		{name: "raise for nobody", method: "POST", path: instance("nobody") + "/raiseEvent/open", body: `1`, headers: []string{"Content-Type", asJSON}, status: 404, message: "-"},
		{name: "raise what is not UTF-8", method: "POST", path: instance("Running") + "/raiseEvent/%c0%af", body: `1`, headers: []string{"Content-Type", asJSON}, status: 400, message: "UTF-8"},
		{name: "raise as text", method: "POST", path: instance("Running") + "/raiseEvent/open", body: `1`, headers: []string{"Content-Type", "text/plain"}, status: 400, message: "Only application/json"},
		{name: "raise as nothing", method: "POST", path: instance("Running") + "/raiseEvent/open", body: `1`, status: 400, message: "Only application/json"},
		{name: "raise bad JSON", method: "POST", path: instance("Running") + "/raiseEvent/open", body: `{`, headers: []string{"Content-Type", asJSON}, status: 400, message: "Invalid JSON"},
		{name: "raise without a body", method: "POST", path: instance("Running") + "/raiseEvent/open", headers: []string{"Content-Type", asJSON}, status: 400, message: "Invalid JSON"},
		{name: "raise by a long name", method: "POST", path: instance("Running") + "/raiseEvent/" + strings.Repeat("x", 257), body: "1", headers: []string{"Content-Type", asJSON}, status: 400, message: "arguments"},
		{name: "raise without a name", method: "POST", path: instance("Running") + "/raiseEvent", body: "1", headers: []string{"Content-Type", asJSON}, status: 404, message: "-"},
		{name: "raise by GET", method: "GET", path: instance("Running") + "/raiseEvent/open", status: 404, message: "-"},

		{name: "terminate", method: "POST", path: instance("Running") + "/terminate?reason=too%20late", status: 202, message: "-", check: reaches("Running", "Terminated")},
		{name: "terminate what nobody has taken up", method: "POST", path: instance("Pending") + "/terminate", status: 202, message: "-", check: reaches("Pending", "Terminated")},
		{name: "terminate for a long reason", method: "POST", path: instance("Running") + "/terminate?reason=" + strings.Repeat("x", 1025), status: 400, message: "arguments", check: reaches("Running", "Running")},
		{name: "suspend", method: "POST", path: instance("Running") + "/suspend?reason=x", status: 202, message: "-", check: reaches("Running", "Suspended")},
		{name: "resume", method: "POST", path: instance("Suspended") + "/RESUME?reason=x", status: 202, message: "-", check: reaches("Suspended", "Running")},

		{name: "rewind", method: "POST", path: instance("Failed") + "/rewind?reason=x", status: 202, message: "-", check: func(t *testing.T, b *bench, _ *httptest.ResponseRecorder) {
			b.drive(t)
			if s, err := b.runtime.Status(t.Context(), "Failed"); err != nil || s.Execution != 2 || s.Status != "Failed" {
				t.Errorf("%+v %v", s, err)
			}
		}},
		{name: "rewind one that goes on", method: "POST", path: instance("Running") + "/rewind", status: 400, message: "arguments", check: reaches("Running", "Running")},

		{name: "restart", method: "POST", path: instance("Completed") + "/restart", status: 202, check: func(t *testing.T, b *bench, rec *httptest.ResponseRecorder) {
			l := body[links](t, rec)
			if l.ID == "Completed" {
				t.Error("the same id")
			}
			reaches(l.ID, "Completed")(t, b, rec)
			hasInput(l.ID, `"you"`)(t, b, rec)
		}},
		{name: "restart one that goes on, as another", method: "POST", path: instance("Running") + "/restart?restartWithNewInstanceId=true", status: 202, check: reaches("Running", "Running")},
		{name: "restart under its id", method: "POST", path: instance("Completed") + "/restart?restartWithNewInstanceId=false&code=k", status: 202, check: func(t *testing.T, b *bench, rec *httptest.ResponseRecorder) {
			isCheckStatus("Completed")(t, b, rec)
			b.drive(t)
			if s, err := b.runtime.Status(t.Context(), "Completed"); err != nil || s.Execution != 2 {
				t.Errorf("%+v %v", s, err)
			}
		}},
		{name: "restart under its id one that goes on", method: "POST", path: instance("Running") + "/restart?restartWithNewInstanceId=false", status: 409, message: "exists"},
		{name: "restart nobody", method: "POST", path: instance("nobody") + "/restart", status: 400, message: "InstanceId does not match a valid orchestration instance."},

		{name: "an operation that is none", method: "POST", path: instance("Running") + "/explode", status: 404, message: "-"},
		{name: "list entities", method: "GET", path: "/entities", status: 501, message: "entities"},
		{name: "list entities by name", method: "GET", path: "/entities/counter", status: 501, message: "entities"},
		{name: "read an entity", method: "GET", path: "/entities/counter/$", status: 501, message: "entities"},
		{name: "signal an entity", method: "POST", path: "/entities/counter/a?op=add", body: "1", status: 501, message: "entities"},
		{name: "delete an entity", method: "DELETE", path: "/entities/counter/a", status: 501, message: "entities"},
		{name: "make primary", method: "POST", path: "/makeprimary/", status: 200, message: "-"},
		{name: "nothing", method: "GET", path: "", status: 404, message: "-"},
		{name: "somewhere", method: "GET", path: "/somewhere/else", status: 404, message: "-"},
		{name: "badly escaped", method: "GET", path: "/instances//x", status: 404, message: "-"},
	}
	for _, status := range []string{"Pending", "Running", "Suspended"} {
		rows = append(rows, row{name: "status " + status, method: "GET", path: instance(status) + "?showInput=false&code=k%2B&%43ode=k&returnInternalServerErrorOnFailure=false", status: 202, check: pollsAgain(status)})
	}
	for _, id := range []string{"Completed", "Failed", "Terminated", "Canceled"} {
		for _, operation := range []string{"terminate", "suspend", "resume", "raiseEvent/open"} {
			rows = append(rows, row{name: operation + " of " + id, method: "POST", path: instance(id) + "/" + operation, body: "1", headers: []string{"Content-Type", asJSON}, status: 410, message: "-"})
		}
		if id != "Failed" {
			rows = append(rows, row{name: "rewind of " + id, method: "POST", path: instance(id) + "/rewind", status: 410, message: "-"})
		}
	}
	for _, operation := range []string{"terminate", "suspend", "resume", "rewind"} {
		rows = append(rows, row{name: operation + " of nobody", method: "POST", path: instance("nobody") + "/" + operation, status: 404, message: "-"})
	}
	return rows
}

func TestContract(t *testing.T) {
	t.Parallel()
	for _, r := range contract() {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			b := filled(t)
			rec := b.send(t, r.method, base+r.path, r.body, r.headers...)
			text := rec.Body.String()
			if rec.Code != r.status {
				t.Fatalf("%d %s, want %d", rec.Code, text, r.status)
			}
			switch {
			case r.message == "-":
				testenv.Equal(t, "body", "", text)
			case r.message != "":
				if p := body[problem](t, rec); !strings.Contains(p.Message+" "+p.ExceptionMessage, r.message) {
					t.Errorf("message %s, want %s in it", text, r.message)
				}
			}
			if text != "" && rec.Header().Get("Content-Type") != "application/json; charset=utf-8" {
				t.Errorf("content type %s", rec.Header().Get("Content-Type"))
			}
			if r.check != nil {
				r.check(t, b, rec)
			}
			if b.log.Len() > 0 {
				t.Errorf("log: %s", b.log.String())
			}
		})
	}
}

// isCheckStatus checks the answer to a start, for a certain instance, or for one with an id of 32 digits.
func isCheckStatus(id string) func(*testing.T, *bench, *httptest.ResponseRecorder) {
	return func(t *testing.T, b *bench, rec *httptest.ResponseRecorder) {
		t.Helper()
		l := body[links](t, rec)
		if id == "" && len(l.ID) != 32 || id != "" && l.ID != id {
			t.Errorf("id %s", l.ID)
		}
		suffix := map[string]string{"": "taskHub=Roundhouse&connection=Storage", "mine": "taskHub=hub&connection=c", "Completed": "taskHub=Roundhouse&connection=Storage"}[id]
		path := "https://app.example.net" + machines + "/instances/" + l.ID
		want := links{l.ID, path + "?" + suffix, path + "/raiseEvent/{eventName}?" + suffix, path + "/terminate?reason={text}&" + suffix, path + "?" + suffix,
			path + "/restart?" + suffix, path + "/suspend?reason={text}&" + suffix, path + "/resume?reason={text}&" + suffix}
		testenv.Equal(t, "", want, l)
		if rec.Header().Get("Location") != want.StatusQueryGetURI || rec.Header().Get("Retry-After") != "10" {
			t.Errorf("headers %v", rec.Header())
		}
		if got := b.send(t, "GET", strings.TrimPrefix(want.StatusQueryGetURI, "https://app.example.net"), ""); got.Code != 202 && got.Code != 200 {
			t.Errorf("its link: %d", got.Code)
		}
	}
}

func hasInput(id, input string) func(*testing.T, *bench, *httptest.ResponseRecorder) {
	return func(t *testing.T, b *bench, _ *httptest.ResponseRecorder) {
		t.Helper()
		if got := body[shown](t, b.send(t, "GET", base+"/instances/"+id, "")); string(got.Input) != input {
			t.Errorf("input %s", got.Input)
		}
	}
}

// lists checks the instances of a list, in any order.
func lists(ids ...string) func(*testing.T, *bench, *httptest.ResponseRecorder) {
	return func(t *testing.T, _ *bench, rec *httptest.ResponseRecorder) {
		t.Helper()
		if !strings.HasPrefix(rec.Body.String(), "[") {
			t.Fatalf("no array: %s", rec.Body)
		}
		got := []string{}
		for _, i := range body[[]shown](t, rec) {
			got = append(got, i.InstanceID)
			if string(i.RuntimeStatus) != i.InstanceID {
				t.Errorf("%+v", i)
			}
		}
		slices.Sort(got)
		testenv.Equal(t, "", append([]string{}, ids...), got)
	}
}

// purges checks the number of instances that a purge reports, -1 for an error, and which are deleted.
func purges(n int, ids ...string) func(*testing.T, *bench, *httptest.ResponseRecorder) {
	return func(t *testing.T, b *bench, rec *httptest.ResponseRecorder) {
		t.Helper()
		if n >= 0 {
			want := map[string]any{"instancesDeleted": float64(n)}
			testenv.Equal(t, "", want, body[map[string]any](t, rec))
		}
		for _, id := range []string{"Canceled", "Completed", "Failed", "Pending", "Running", "Suspended", "Terminated"} {
			got := b.send(t, "GET", base+"/instances/"+id, "").Code
			testenv.Equal(t, fmt.Sprintf("%s is gone", id), got == http.StatusNotFound, slices.Contains(ids, id))
		}
	}
}

// shows checks the whole JSON of an instance that is named by its status.
func shows(id, input, output, custom string) func(*testing.T, *bench, *httptest.ResponseRecorder) {
	return func(t *testing.T, _ *bench, rec *httptest.ResponseRecorder) {
		t.Helper()
		got := body[map[string]json.RawMessage](t, rec)
		name := map[bool]string{true: `"Gate"`, false: `"Hello"`}[custom == `"closed"`]
		want := map[string]json.RawMessage{"name": json.RawMessage(name), "instanceId": json.RawMessage(`"` + id + `"`), "runtimeStatus": json.RawMessage(`"` + id + `"`),
			"input": json.RawMessage(input), "output": json.RawMessage(output), "customStatus": json.RawMessage(custom),
			"createdTime": got["createdTime"], "lastUpdatedTime": got["lastUpdatedTime"]}
		testenv.Equal(t, "", texts(want), texts(got))
		if at := string(got["createdTime"]); len(at) != len(`"2026-01-02T03:04:05Z"`) || !strings.HasSuffix(at, `Z"`) {
			t.Errorf("created %s", at)
		}
	}
}

func texts(m map[string]json.RawMessage) map[string]string {
	all := map[string]string{}
	for name, value := range m {
		all[name] = string(value)
	}
	return all
}

// reaches lets the messages take effect and checks the status of the instance.
func reaches(id, status string) func(*testing.T, *bench, *httptest.ResponseRecorder) {
	return func(t *testing.T, b *bench, _ *httptest.ResponseRecorder) {
		t.Helper()
		b.drive(t)
		for try := 0; status == "Completed" && try < 100; try++ { // it sleeps for a second
			if s, err := b.runtime.Status(t.Context(), id); err == nil && s.Ended() {
				break
			}
			b.drive(t)
		}
		if s, err := b.runtime.Status(t.Context(), id); err != nil || string(s.Status) != status {
			t.Errorf("%s is %s, want %s (%v)", id, s.Status, status, err)
		}
	}
}

// pollsAgain checks the answer that asks a client to poll again.
func pollsAgain(id string) func(*testing.T, *bench, *httptest.ResponseRecorder) {
	return func(t *testing.T, _ *bench, rec *httptest.ResponseRecorder) {
		t.Helper()
		want := "https://app.example.net" + machines + "/instances/" + id + "?showInput=false&returnInternalServerErrorOnFailure=false"
		if rec.Header().Get("Location") != want || rec.Header().Get("Retry-After") != "5" {
			t.Errorf("headers %v", rec.Header())
		}
		if got := body[shown](t, rec); string(got.RuntimeStatus) != id {
			t.Errorf("%+v", got)
		}
	}
}
