package trigger

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/queues"
)

var testQueue = Queue{Queue: "hmac-rotation-queue", Parameter: "message"}

const testInvocation = "0d3b0a5e-6f0e-4a86-9b5f-0a4f6f1f3c11"

// hostMetadata is the host's metadata of every queue message.
const hostMetadata = `{"DequeueCount":"3","ExpirationTime":"9999-12-31T23:59:59+00:00","Id":"\"800ae4b3-bdd2-4c08-badd-f08e5a34b865\"",` +
	`"InsertionTime":"2019-10-09T17:58:31+00:00","NextVisibleTime":"2019-10-09T18:08:32+00:00","PopReceipt":"\"AgAAAAMAAAAAAAAAAgtnj8x+1QE=\"",` +
	`"sys":{"MethodName":"QueueTrigger","UtcNow":"2019-10-09T17:58:32.2205399Z","RandGuid":"24ad4c06-24ad-4e5b-8294-3da9714877e9"}}`

func body(data, meta string) string {
	return `{"Data":{"message":` + data + `},"Metadata":` + meta + `}`
}

// delivery returns the delivery for hostMetadata.
func delivery(body string) engine.Delivery {
	return engine.Delivery{
		Queue:        "hmac-rotation-queue",
		ID:           "800ae4b3-bdd2-4c08-badd-f08e5a34b865",
		PopReceipt:   "AgAAAAMAAAAAAAAAAgtnj8x+1QE=",
		Body:         []byte(body),
		DequeueCount: 3,
		InsertedAt:   time.Date(2019, 10, 9, 17, 58, 31, 0, time.UTC),
	}
}

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

func quoted(s string) string {
	q, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(q)
}

func TestDecodeDeliveryForms(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, data, want string }{
		{"binary, text as sent by us", quoted(b64(b64(`{"a":1}`))), `{"a":1}`},
		{"binary, plain text", quoted(b64(`{"a":1}`)), `{"a":1}`},
		{"binary, plain text that JSON would escape", quoted(b64("<\"\u00e9\u4e16\\>\n")), "<\"\u00e9\u4e16\\>\n"},
		{"binary, empty message", `""`, ""},
		{"binary, not UTF-8", quoted(b64("\xff\xfe")), "\xff\xfe"},
		{"binary, base64 of bytes that are not UTF-8 stays as it is", quoted(b64(b64("\xff\xfe"))), b64("\xff\xfe")},
		{"text, encoded twice", `"\"hello\""`, "hello"},
		{"text, encoded twice, sent by us", quoted(quoted(b64(`{"a":1}`))), `{"a":1}`},
		{"text, encoded twice, JSON object", `"\"{\\\"a\\\":1,\\\"s\\\":\\\"x\\\"}\""`, `{"a":1,"s":"x"}`},
		{"text, encoded twice, holds a JSON string", quoted(quoted(`"x"`)), `"x"`},
		{"text, encoded once, as documented", `"hello, world"`, "hello, world"},
		{"text, encoded once, JSON object", `"{\"a\":1}"`, `{"a":1}`},
		{"text, encoded once, begins like a JSON string", `"\"half"`, `"half`},
		{"JSON object", `{"a": [1, 2]}`, `{"a": [1, 2]}`},
		{"JSON array", `[1,"x"]`, `[1,"x"]`},
		{"JSON number", `42`, `42`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := decodeDelivery(testQueue, []byte(body(tt.data, hostMetadata)), testInvocation)
			testenv.OK(t, err)
			testenv.Equal(t, "delivery", delivery(tt.want), got)
		})
	}
}

func TestDecodeDeliveryMetadata(t *testing.T) {
	t.Parallel()
	bare := engine.Delivery{Queue: "hmac-rotation-queue", ID: testInvocation, Body: []byte("hi"), DequeueCount: 1}
	with := func(change func(*engine.Delivery)) engine.Delivery {
		d := bare
		change(&d)
		return d
	}
	count := func(n int) engine.Delivery { return with(func(d *engine.Delivery) { d.DequeueCount = n }) }
	id := func(s string) engine.Delivery { return with(func(d *engine.Delivery) { d.ID = s }) }
	inserted := func(s string) engine.Delivery {
		at, err := time.Parse(time.RFC3339, s)
		testenv.OK(t, err)
		return with(func(d *engine.Delivery) { d.InsertedAt = at.UTC() })
	}
	for _, tt := range []struct {
		name, meta string
		want       engine.Delivery
	}{
		{"empty", `{}`, bare},
		{"null", `null`, bare},
		{"not an object", `[1]`, bare},
		{"null members", `{"DequeueCount":null,"Id":null,"InsertionTime":null}`, bare},
		{"members of other kinds", `{"DequeueCount":{},"Id":[1],"InsertionTime":{"a":1}}`, bare},
		{"count as text", `{"DequeueCount":"2"}`, count(2)},
		{"count as number", `{"DequeueCount":2}`, count(2)},
		{"count as quoted text", `{"DequeueCount":"\"2\""}`, count(2)},
		{"count 0", `{"DequeueCount":"0"}`, bare},
		{"count negative", `{"DequeueCount":-4}`, bare},
		{"count not a number", `{"DequeueCount":"many"}`, bare},
		{"count beyond 32 bits", `{"DequeueCount":4294967296}`, count(math.MaxInt32)},
		{"id quoted", `{"Id":"\"abc\""}`, id("abc")},
		{"id plain", `{"Id":"abc"}`, id("abc")},
		{"time", `{"InsertionTime":"2026-11-21T05:41:00+00:00"}`, inserted("2026-11-21T05:41:00Z")},
		{"time quoted", `{"InsertionTime":"\"2026-11-21T05:41:00+02:00\""}`, inserted("2026-11-21T03:41:00Z")},
		{"time in another form", `{"InsertionTime":"\"01/02/2024 03:04:05\""}`, bare},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := decodeDelivery(testQueue, []byte(body(quoted(b64("hi")), tt.meta)), testInvocation)
			testenv.OK(t, err)
			testenv.Equal(t, "delivery", tt.want, got)
		})
	}
}

// In the text form a message can overwrite the host's metadata with its own members, which are ignored.
func TestDecodeDeliveryIgnoresOverwrittenMetadata(t *testing.T) {
	t.Parallel()
	const message = `{"a":1,"dequeueCount":99,"Id":"x","nested":{"b":2}}`
	const meta = `{"a":"\"1\"","DequeueCount":"\"99\"","Id":"\"x\"","nested":{"b":2},"InsertionTime":"2019-10-09T17:58:31+00:00"}`
	want := delivery(message)
	want.ID, want.PopReceipt, want.DequeueCount = testInvocation, "", 1
	for name, data := range map[string]string{
		"encoded twice": quoted(quoted(message)),
		"encoded once":  quoted(message),
		"object":        message,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := decodeDelivery(testQueue, []byte(body(data, meta)), testInvocation)
			testenv.OK(t, err)
			testenv.Equal(t, "delivery", want, got)
		})
	}
	t.Run("binary keeps the host's", func(t *testing.T) {
		t.Parallel()
		got, err := decodeDelivery(testQueue, []byte(body(quoted(b64(message)), hostMetadata)), testInvocation)
		testenv.OK(t, err)
		testenv.Equal(t, "delivery", delivery(message), got)
	})
}

func TestDecodeDeliveryRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, body, want string }{
		{"nothing", ``, "not an invocation in JSON"},
		{"cut off", `{"Data":{"message":"aGk="}`, "not an invocation in JSON"},
		{"more than one value", body(`"aGk="`, `{}`) + `{}`, "not an invocation in JSON"},
		{"another kind", `"hello"`, "not an invocation in JSON"},
		{"null", `null`, "no Data.message"},
		{"no data", `{"Metadata":{}}`, "no Data.message"},
		{"another parameter", `{"Data":{"msg":"aGk="}}`, "no Data.message"},
		{"null message", body(`null`, `{}`), "Data.message: the message is null"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := decodeDelivery(testQueue, []byte(tt.body), testInvocation)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}

func FuzzDecodeDelivery(f *testing.F) {
	for _, data := range []string{`"aGk="`, `"\"hello\""`, `"{\"Id\":1}"`, `{"a":1}`, `[1]`, `null`, `1`} {
		f.Add([]byte(body(data, hostMetadata)))
	}
	f.Add([]byte(`{"Data":{"message":"\ud800"},"Metadata":{"DequeueCount":"\"1\"","Id":"\"\\\"x\\\"\""}}`))
	f.Fuzz(func(t *testing.T, invocation []byte) {
		d, err := decodeDelivery(testQueue, invocation, testInvocation)
		if err != nil {
			return
		}
		if d.Queue != testQueue.Queue || d.ID == "" || d.DequeueCount < 1 || d.Body == nil {
			t.Errorf("delivery %+v of %q", d, invocation)
		}
		// An escaped or invalid character grows to at most 3 bytes.
		if len(d.Body) > 3*len(invocation) {
			t.Errorf("%d bytes came out of %d", len(d.Body), len(invocation))
		}
	})
}

// Any content of a queue passes through the binary form unchanged, and valid UTF-8 through the form encoded twice.
func FuzzMessageText(f *testing.F) {
	for _, text := range []string{"", "hello", `{"a":1}`, `"x"`, "aGk=", "\xff", "null"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		got, binary, err := messageText(json.RawMessage(quoted(base64.StdEncoding.EncodeToString(message))))
		if err != nil || !binary || got != string(message) {
			t.Fatalf("binary form of %q: %q, %v, %v", message, got, binary, err)
		}
		valid := strings.ToValidUTF8(string(message), "?")
		got, binary, err = messageText(json.RawMessage(quoted(quoted(valid))))
		if err != nil || binary || got != valid {
			t.Fatalf("text form of %q: %q, %v, %v", valid, got, binary, err)
		}
		if diff := cmp.Diff(queues.Decode(valid), queues.Decode(got)); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestDecodeTimer(t *testing.T) {
	t.Parallel()
	const meta = `{"sys":{"MethodName":"tick","UtcNow":"2026-11-21T05:41:00.0841859Z","RandGuid":"764cab12-0000-0000-0000-000000000000"}}`
	fired := time.Date(2026, 11, 21, 5, 41, 0, 84185900, time.UTC)
	next := time.Date(2026, 11, 21, 5, 41, 0, 0, time.UTC)
	for _, tt := range []struct {
		name, timer, meta string
		want              TimerDelivery
	}{
		{
			"first run",
			`{"Schedule":{"AdjustForDST":true},"ScheduleStatus":{"Last":"0001-01-01T00:00:00+00:00","Next":"2026-11-21T05:41:00+00:00","LastUpdated":"0001-01-01T00:00:00+00:00"},"IsPastDue":false}`,
			meta,
			TimerDelivery{ScheduledAt: next, FiredAt: fired},
		},
		{
			"past due",
			`{"Schedule":{"AdjustForDST":true},"ScheduleStatus":{"Last":"2026-11-20T05:41:00+00:00","Next":"2026-11-21T05:41:00+00:00","LastUpdated":"2026-11-20T05:41:00+00:00"},"IsPastDue":true}`,
			meta,
			TimerDelivery{ScheduledAt: next, LastAt: next.AddDate(0, 0, -1), FiredAt: fired, IsPastDue: true},
		},
		{"no schedule status", `{"Schedule":{"AdjustForDST":false},"ScheduleStatus":null,"IsPastDue":false}`, meta, TimerDelivery{FiredAt: fired}},
		{"no metadata", `{"ScheduleStatus":null,"IsPastDue":"True"}`, `null`, TimerDelivery{IsPastDue: true}},
		{
			"retry",
			`{"ScheduleStatus":{"Next":"2026-11-21T05:41:00+00:00"},"IsPastDue":false}`,
			`{"sys":"odd","RetryContext":{"RetryCount":0,"MaxRetryCount":2,"Exception":null,"Instance":null,"State":{}}}`,
			TimerDelivery{ScheduledAt: next},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := decodeTimer("myTimer", []byte(`{"Data":{"myTimer":`+tt.timer+`},"Metadata":`+tt.meta+`}`))
			testenv.OK(t, err)
			testenv.Equal(t, "delivery", tt.want, got)
		})
	}
}

func TestDecodeTimerRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ body, want string }{
		{`{`, "not an invocation in JSON"},
		{`{"Data":{}}`, "no Data.myTimer"},
		{`{"Data":{"myTimer":"soon"}}`, "not the state of a timer"},
	} {
		_, err := decodeTimer("myTimer", []byte(tt.body))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want one with %q", tt.body, err, tt.want)
		}
	}
}

func FuzzDecodeTimer(f *testing.F) {
	f.Add([]byte(`{"Data":{"myTimer":{"ScheduleStatus":{"Next":"2026-11-21T05:41:00+00:00"},"IsPastDue":true}},"Metadata":{"sys":{"UtcNow":"2026-11-21T05:41:00Z"}}}`))
	f.Add([]byte(`{"Data":{"myTimer":{"ScheduleStatus":null,"IsPastDue":"\"True\""}}}`))
	f.Fuzz(func(t *testing.T, invocation []byte) {
		d, err := decodeTimer("myTimer", invocation)
		if err != nil && d != (TimerDelivery{}) {
			t.Errorf("%+v beside the error %v", d, err)
		}
		for _, at := range []time.Time{d.ScheduledAt, d.LastAt, d.FiredAt} {
			testenv.Equal(t, fmt.Sprintf("location of %v", at), "UTC", at.Location().String())
		}
	})
}
