package engine

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/orchestrator"
)

// newClaims returns a store of inputs and the blobs behind it.
func newClaims(t *testing.T) (*Claims, *blobs.Memory) {
	t.Helper()
	store := blobs.NewMemory()
	c := NewClaims(store, "")
	if err := c.createContainer(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c, store
}

func TestClaimsCarryWhatIsLarge(t *testing.T) {
	t.Parallel()
	c, store := newClaims(t)
	for _, size := range []int{10, MaxMessage - 200, MaxMessage, 300 << 10} {
		want := Message{CorrelationID: "a/b #1", Engine: "turntable", Input: json.RawMessage(`"` + strings.Repeat("x", size) + `"`)}
		body, err := c.Pack(t.Context(), want)
		again, againErr := c.Pack(t.Context(), want)
		if err != nil || againErr != nil || string(body) != string(again) || len(body) > MaxMessage {
			t.Fatalf("%d: %d bytes, %v, %v", size, len(body), err, againErr)
		}
		m, err := Definition{}.decodeMessage(body, "m1")
		if err != nil || (m.Blob != "") != (size >= MaxMessage) {
			t.Fatalf("%d: blob %q, %v", size, m.Blob, err)
		}
		got, err := c.resolve(t.Context(), "turntable", m)
		want.InstanceID = PublisherInstance
		same := cmp.Comparer(func(a, b json.RawMessage) bool { return string(a) == string(b) }) // of 300 KiB, not byte by byte
		if diff := cmp.Diff(want, got, same); diff != "" || err != nil {
			t.Errorf("%d: %v (-want +got):\n%s", size, err, diff)
		}
	}
	names := 0
	for _, err := range blobs.All(t.Context(), store, DefaultClaimsContainer, "turntable/a=2Fb =231/") {
		if names++; err != nil {
			t.Fatal(err)
		}
	}
	if names != 2 {
		t.Errorf("%d blobs, want one for each large input", names)
	}
}

func TestClaimsOfOthersAreRefused(t *testing.T) {
	t.Parallel()
	c, store := newClaims(t)
	name := claimName("turntable", "c1", []byte(`{}`))
	for blob, content := range map[string]string{name: `{"changed":true}`, claimName("turntable", "c2", []byte(`{}`)): `{}`, claimName("other", "c1", []byte(`{}`)): `{}`} {
		if err := store.Put(t.Context(), DefaultClaimsContainer, blob, []byte(content)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.resolve(t.Context(), "turntable", Message{CorrelationID: "c1", Blob: blob}); !errors.Is(err, errClaimUnavailable) {
			t.Errorf("%s: %v", blob, err)
		}
	}
	for _, blob := range []string{"missing", "../x", "a\\b", strings.Repeat("x", 2000)} {
		if _, err := c.resolve(t.Context(), "turntable", Message{CorrelationID: "c1", Blob: blob}); !errors.Is(err, errClaimUnavailable) {
			t.Errorf("%.20s: %v", blob, err)
		}
	}
	var none *Claims
	if _, err := none.resolve(t.Context(), "turntable", Message{CorrelationID: "c1", Blob: name}); !errors.Is(err, errClaimUnavailable) {
		t.Errorf("without a store: %v", err)
	}
}

func TestPackRefuses(t *testing.T) {
	t.Parallel()
	c, _ := newClaims(t)
	large := json.RawMessage(`"` + strings.Repeat("x", MaxMessage) + `"`)
	for name, m := range map[string]Message{
		"no engine":         {CorrelationID: "c", Input: large},
		"no correlation id": {Engine: "e", Input: large},
		"no JSON":           {CorrelationID: "c", Engine: "e", Input: json.RawMessage(`{`)},
		"large elsewhere":   {CorrelationID: "c", Engine: "e", TenantID: string(large)},
	} {
		if _, err := c.Pack(t.Context(), m); err == nil {
			t.Errorf("%s is packed", name)
		}
	}
}

func TestAdaptersComeBeforeTheEnvelope(t *testing.T) {
	t.Parallel()
	foreign := errors.New("bad foreign body")
	d := Definition{Adapt: func(body []byte) (Message, bool, error) {
		switch {
		case strings.Contains(string(body), "bad"):
			return Message{}, true, foreign
		case strings.Contains(string(body), "foreign"):
			return Message{CorrelationID: "derived", Input: body}, true, nil
		}
		return Message{}, false, nil
	}}
	m, err := d.decodeMessage([]byte(`{"foreign":1}`), "m1")
	if diff := cmp.Diff(Message{CorrelationID: "derived", InstanceID: PublisherInstance, Input: []byte(`{"foreign":1}`), NaturalKey: true}, m); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if m, err := d.decodeMessage([]byte(`{"correlationId":"c"}`), "m1"); m.CorrelationID != "c" || err != nil {
		t.Errorf("envelope: %+v, %v", m, err)
	}
	if m, err := d.decodeMessage([]byte(`{"bad":1}`), "m1"); !errors.Is(err, foreign) || m.CorrelationID != deriveCorrelationID("m1") {
		t.Errorf("bad body: %+v, %v", m, err)
	}
	if _, err := d.decodeMessage([]byte(`{"blob":"b","input":1}`), "m1"); err == nil {
		t.Error("a message with both input and blob is taken")
	}
}

// A long id does not make an event unpublishable, and does not share the order key of another id.
func TestOrderKey(t *testing.T) {
	t.Parallel()
	long := "/subscriptions/" + strings.Repeat("x", MaxIDLength)
	if k := OrderKey(long); len(k) > MaxIDLength || k != OrderKey(long) || k == OrderKey(long+"y") {
		t.Errorf("the order key of a long id is %q", k)
	}
	if short := long[:MaxIDLength]; OrderKey(short) != short || OrderKey("") != "" {
		t.Error("a short id is not its own order key")
	}
}

func TestDeriveCorrelationID(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, parts := range [][]string{{}, {""}, {"a", "bc"}, {"ab", "c"}, {"abc"}, {"a:2:bc"}} {
		id := DeriveCorrelationID("kind", parts...)
		if seen[id] || id != DeriveCorrelationID("kind", parts...) || id == DeriveCorrelationID("other", parts...) {
			t.Errorf("%q: %s", parts, id)
		}
		seen[id] = true
	}
}

// Activities of two engines share no name; the history shows the operation.
func TestOperationNames(t *testing.T) {
	t.Parallel()
	d := Definition{Name: "turntable", Operations: []orchestrator.AnyActivity{orchestrator.NewActivity[int, int]("turntable/process", nil)}}
	if got := d.operationOf(Message{}); got != "process" {
		t.Errorf("operation %q", got)
	}
}
