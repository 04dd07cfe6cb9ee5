package orchestrator

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/vibedata/roundhouse/internal/fuzzvalue"
)

// plainRound is a round as encoding/json reads and writes it.
type plainRound struct {
	Learned []storedEvent `json:"learned,omitempty"`
	Decided []storedEvent `json:"decided,omitempty"`
	More    bool          `json:"more,omitempty"`
}

func plain(r round) plainRound {
	out := plainRound{More: r.More}
	for _, e := range r.Learned {
		out.Learned = append(out.Learned, e.stored())
	}
	for _, e := range r.Decided {
		out.Decided = append(out.Decided, e.stored())
	}
	return out
}

// The output equals, byte for byte, that of encoding/json.
func FuzzRoundsAreWrittenAsJSON(f *testing.F) {
	fuzzvalue.Seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		s := fuzzvalue.New(data)
		r := madeRound(s)
		for range s.Int(3) { // unchecked payloads
			r.Decided = append(r.Decided, event{Kind: eventKind(s.Text(20)), Payload: s.Bytes(20), Target: &target{Tasks: []int{s.Int(9)}}})
		}
		got, errGot := appendRound(nil, r)
		want, errWant := marshal(plain(r))
		if (errGot == nil) != (errWant == nil) || errGot == nil && string(got) != string(want) {
			t.Errorf("written is %s, %v\nnot %s, %v", got, errGot, want, errWant)
		}
	})
}

// The reader accepts the same input as encoding/json, and decodes the same round.
func FuzzRoundsAreReadAsJSON(f *testing.F) {
	for _, text := range roundTexts() {
		f.Add([]byte(text))
	}
	f.Fuzz(checkRead)
}

func TestRoundsAreReadAsJSON(t *testing.T) {
	t.Parallel()
	for _, text := range roundTexts() {
		checkRead(t, []byte(text))
		for i := range min(len(text), 300) {
			checkRead(t, []byte(text[:i]))
			checkRead(t, slices.Concat([]byte(text[:i]), []byte(" "), []byte(text[i:])))
			checkRead(t, slices.Concat([]byte(text[:i]), []byte("\x00"), []byte(text[i+1:])))
			checkRead(t, slices.Concat([]byte(text[:i]), []byte("0"), []byte(text[i+1:])))
		}
	}
}

func checkRead(t *testing.T, text []byte) {
	t.Helper()
	before := string(text)
	var want round
	errWant := json.Unmarshal([]byte(before), &want)
	got, errGot := new(roundReader).read(text)
	switch {
	case (errGot == nil) != (errWant == nil):
		t.Errorf("%q is read with %v, not %v", before, errGot, errWant)
	case errGot == nil:
		if reflect.DeepEqual(want, got) {
			break
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%q (-want +got):\n%s", before, diff)
		}
	}
	for _, e := range slices.Concat(got.Learned, got.Decided) {
		_ = append(e.Payload, "behind"...)
	}
	if string(text) != before {
		t.Errorf("%q has become %q", before, text)
	}
}

// roundTexts returns rounds that are difficult for a reader.
func roundTexts() []string {
	texts := []string{`{}`, `{"more":true}`, `{"more":false}`, `{"learned":null,"decided":[]}`, `{"learned":[null,{}]}`, `[]`, `{"learned":[5]}`, `{"learned":[{"at":1}],"learned":[{"task":2}]}`,
		`{"Learned":[{"KIND":"a","at":1,"At":2}]}`, `{"decided":[{"kind":"a"}],"unknown":{"a":[1]}}` + "\n"}
	for _, e := range []string{
		`"kind":"ActivityScheduled","at":946684800000001,"task":12,"name":"step","payload":{"a":[1,-2.5e+7,"\"é",null,true,false,{}]}`,
		`"kind":"ActivityFailed","at":1,"task":1,"failure":{"message":"m","permanent":true},"attempt":2,"due":-7`,
		`"kind":"EventRaised","at":1,"name":"go\n\u00e9","payload":"x\\","signal":"s","stream":"a/1","sequence":3`,
		`"kind":"OrchestrationScheduled","at":1,"child":"a:1","shielded":true,"close":"abandon","payload":null`,
		`"kind":"ExecutionStarted","at":1,"tenant":"t","call":{"execution":1,"task":2},"carry":"YQ==","inherited":{"unread":[{"kind":"EventRaised","at":1}]}`,
		`"kind":"a","kind":"b"`, `"at":01`, `"at":-`, `"at":1.0`, `"at":1e2`, `"at":9223372036854775807`, `"at":9223372036854775808`, `"at":-0`, `"at":null`, `"at":"1"`,
		`"task":1,"task":2`, `"name":null`, `"name":5`, `"name":"` + "\xff" + `"`, `"name":"` + "\u2028é" + `"`, `"name":"a` + "\t" + `"`, `"name":"\ud800"`, `"name":"\x"`,
		`"shielded":false`, `"shielded":tru`, `"child":""`, `"signal":""`, `"payload":01`, `"payload":[1,]`, `"payload":{"a"}`, `"payload":"\u12g4"`, `"payload":"` + "\xff" + `"`, `"payload":`,
		`"blob":"00000001/abc","blob":"x"`, `"new":{"field":1},"at":3`, `"na\u006de":"x"`, `"payload":` + strings.Repeat("[", 501) + strings.Repeat("]", 501),
	} {
		texts = append(texts, `{"learned":[{`+e+`}],"decided":[{"kind":"b","at":2},{`+e+`}],"more":true}`)
	}
	return texts
}
