package localhost

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/internal/testenv"
)

// plain returns an envelope without the members that differ each time.
func plain(t *testing.T, e envelope) map[string]any {
	t.Helper()
	var sys map[string]string
	if err := json.Unmarshal(e.Metadata["sys"], &sys); err != nil || len(sys) != 3 || len(sys["RandGuid"]) != 36 {
		t.Errorf("sys is %s", e.Metadata["sys"])
	}
	delete(e.Metadata, "sys")
	return decoded(t, string(encode(e)))
}

func decoded(t *testing.T, text string) map[string]any {
	t.Helper()
	var value map[string]any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return value
}

var (
	moment   = time.Date(2019, 10, 9, 17, 58, 32, 220_539_900, time.UTC)
	delivery = queueDelivery{
		id: "800ae4b3-bdd2-4c08-badd-f08e5a34b865", popReceipt: "AgAAAAMAAAAAAAAAAgtnj8x+1QE=", dequeueCount: 1,
		inserted: time.Date(2019, 10, 9, 17, 58, 31, 999_000_000, time.UTC),
		expires:  time.Date(2019, 10, 16, 17, 58, 31, 0, time.UTC), nextVisible: time.Date(2019, 10, 9, 18, 8, 32, 0, time.UTC),
	}
)

// standardMetadata is the metadata of a queue function's invocation.
const standardMetadata = `"DequeueCount":"1","ExpirationTime":"2019-10-16T17:58:31+00:00","Id":"\"800ae4b3-bdd2-4c08-badd-f08e5a34b865\"",
	"InsertionTime":"2019-10-09T17:58:31+00:00","NextVisibleTime":"2019-10-09T18:08:32+00:00","PopReceipt":"\"AgAAAAMAAAAAAAAAAgtnj8x+1QE=\""`

func TestQueueEnvelope(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		dataType, body, want string
	}{
		"text":                         {"", "hello", `{"Data":{"q":"\"hello\""},"Metadata":{` + standardMetadata + `}}`},
		"text that JSON has to escape": {"string", "a\"<&>\u00e9\n", `{"Data":{"q":"\"a\\\"<&>é\\n\""},"Metadata":{` + standardMetadata + `}}`},
		"binary":                       {"binary", "\x00\xffhello", `{"Data":{"q":"AP9oZWxsbw=="},"Metadata":{` + standardMetadata + `}}`},
		"binary object overwrites nothing": {"binary", `{"DequeueCount":99}`,
			`{"Data":{"q":"eyJEZXF1ZXVlQ291bnQiOjk5fQ=="},"Metadata":{` + standardMetadata + `}}`},
		"array is not taken apart":  {"", `[1]`, `{"Data":{"q":"\"[1]\""},"Metadata":{` + standardMetadata + `}}`},
		"two objects are no object": {"", `{"a":1}{}`, `{"Data":{"q":"\"{\\\"a\\\":1}{}\""},"Metadata":{` + standardMetadata + `}}`},
		"object overwrites": {"", `{"a":1,"dequeuecount":99,"Id":"x","nested":{"b":2},"arr":[1],"myTrigger":"z","t":true,"n":null,"f":1.50,"e":1e20,"d":"2024-01-02T03:04:05Z"}`,
			`{"Data":{"q":"\"{\\\"a\\\":1,\\\"dequeuecount\\\":99,\\\"Id\\\":\\\"x\\\",\\\"nested\\\":{\\\"b\\\":2},\\\"arr\\\":[1],\\\"myTrigger\\\":\\\"z\\\",\\\"t\\\":true,\\\"n\\\":null,\\\"f\\\":1.50,\\\"e\\\":1e20,\\\"d\\\":\\\"2024-01-02T03:04:05Z\\\"}\""},
			"Metadata":{"DequeueCount":"\"99\"","ExpirationTime":"2019-10-16T17:58:31+00:00","Id":"\"x\"","InsertionTime":"2019-10-09T17:58:31+00:00",
			"NextVisibleTime":"2019-10-09T18:08:32+00:00","PopReceipt":"\"AgAAAAMAAAAAAAAAAgtnj8x+1QE=\"",
			"a":"\"1\"","nested":{"b":2},"t":"\"True\"","f":"\"1.5\"","e":"\"1E+20\"","d":"\"01/02/2024 03:04:05\""}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := delivery
			d.body = []byte(test.body)
			f := &function{name: "fn", trigger: binding{Type: queueTrigger, Name: "q", DataType: test.dataType}}
			e := testenv.Must(queueEnvelope(f, d, moment))(t)
			testenv.Equal(t, "", decoded(t, test.want), plain(t, e))
		})
	}
}

func TestQueueEnvelopeOfMessageThatIsNoText(t *testing.T) {
	t.Parallel()
	d := delivery
	d.body = []byte("\xff")
	_, err := queueEnvelope(&function{name: "fn", trigger: binding{Type: queueTrigger, Name: "q"}}, d, moment)
	if !errors.Is(err, errNotText) {
		t.Errorf("error %v, want %v", err, errNotText)
	}
}

func TestQueueEnvelopeByHand(t *testing.T) {
	t.Parallel()
	f := &function{name: "fn", trigger: binding{Type: queueTrigger, Name: "q"}}
	e := testenv.Must(queueEnvelope(f, queueDelivery{inserted: moment, body: []byte("x")}, moment))(t)
	want := `{"Data":{"q":"\"x\""},"Metadata":{"DequeueCount":"0","ExpirationTime":"9999-12-31T23:59:59+00:00",
		"InsertionTime":"2019-10-09T17:58:32+00:00","NextVisibleTime":"9999-12-31T23:59:59+00:00"}}`
	testenv.Equal(t, "", decoded(t, want), plain(t, e))
}

func TestTimerEnvelope(t *testing.T) {
	t.Parallel()
	f := &function{name: "tick", trigger: binding{Type: timerTrigger, Name: "myTimer"}}
	cron := testenv.Must(parseSchedule("0 * * * * *"))(t)
	constant := testenv.Must(parseSchedule("00:05:00"))(t)
	status := &timerStatus{Next: dateTime{time.Date(2026, 11, 21, 5, 41, 0, 0, time.UTC)}}
	for name, test := range map[string]struct {
		schedule schedule
		status   *timerStatus
		pastDue  bool
		want     string
	}{
		"monitored": {cron, status, false, `{"Data":{"myTimer":{"Schedule":{"AdjustForDST":true},"ScheduleStatus":{"Last":"0001-01-01T00:00:00+00:00",
			"Next":"2026-11-21T05:41:00+00:00","LastUpdated":"0001-01-01T00:00:00+00:00"},"IsPastDue":false}},"Metadata":{}}`},
		"not monitored, constant, late": {constant, nil, true,
			`{"Data":{"myTimer":{"Schedule":{"AdjustForDST":false},"ScheduleStatus":null,"IsPastDue":true}},"Metadata":{}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := timerEnvelope(f, test.schedule, test.status, test.pastDue, moment)
			testenv.Equal(t, "", decoded(t, test.want), plain(t, e))
		})
	}
}

func TestManualEnvelope(t *testing.T) {
	t.Parallel()
	f := &function{name: "fn", trigger: binding{Type: manualTrigger, Name: "msg", DataType: "binary"}}
	e := testenv.Must(manualEnvelope(f, `{"a":1}`, moment))(t)
	want := `{"Data":{"msg":"\"{\\\"a\\\":1}\""},"Metadata":{"msg":"\"{\\\"a\\\":1}\"","a":"\"1\""}}`
	testenv.Equal(t, "", decoded(t, want), plain(t, e))
}

func TestSystemMetadata(t *testing.T) {
	t.Parallel()
	var sys map[string]string
	testenv.OK(t, json.Unmarshal(newEnvelope("fn", moment).Metadata["sys"], &sys))
	if sys["MethodName"] != "fn" || sys["UtcNow"] != "2019-10-09T17:58:32.2205399Z" {
		t.Errorf("sys is %v", sys)
	}
}

// FuzzSpill checks that for any message, the invocation's body is JSON that contains the text unchanged.
func FuzzSpill(f *testing.F) {
	f.Add(`{"a":1,"b":{"c":[]},"d":"2024-01-02T03:04:05+02:00","e":-1.5E-300}`)
	f.Add("plain")
	fn := &function{name: "fn", trigger: binding{Type: queueTrigger, Name: "q"}}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := queueEnvelope(fn, queueDelivery{id: "1", dequeueCount: 1, body: []byte(text)}, moment)
		if err != nil {
			return // not UTF-8
		}
		var got struct{ Data map[string]string }
		testenv.OK(t, json.Unmarshal(encode(e), &got))
		var once string
		if err := json.Unmarshal([]byte(got.Data["q"]), &once); err != nil || once != text {
			t.Errorf("%q came back as %q (%v)", text, once, err)
		}
	})
}
