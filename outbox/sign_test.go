package outbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/internal/testenv"
)

func signingKey(id string, fill byte) SigningKey {
	return SigningKey{ID: id, Secret: bytes.Repeat([]byte{fill}, 32)}
}

// The example that the libraries of Standard Webhooks share.
const (
	exampleSecret    = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	exampleID        = "msg_p5jXN8AQM9LWM0D4loKWxJek"
	exampleBody      = `{"test": 2432232314}`
	exampleTime      = 1614265330
	exampleSignature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
)

func exampleRequest(t *testing.T, keys ...SigningKey) http.Header {
	t.Helper()
	h := http.Header{}
	testenv.OK(t, Sign(h, exampleID, time.Unix(exampleTime, 0), []byte(exampleBody), keys))
	return h
}

func TestSignStandardWebhooksExample(t *testing.T) {
	t.Parallel()
	key := testenv.Must(ParseSigningKey("k1", exampleSecret))(t)
	h := exampleRequest(t, key)
	for name, want := range map[string]string{
		"webhook-id": exampleID, "webhook-timestamp": "1614265330", "webhook-signature": exampleSignature, "webhook-key-id": "k1",
	} {
		if got := h.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	bareKey, err := ParseSigningKey("k1", strings.TrimPrefix(exampleSecret, "whsec_"))
	if err != nil || !bytes.Equal(bareKey.Secret, key.Secret) {
		t.Errorf("without prefix: %v, %v", bareKey, err)
	}
}

func TestVerifySignature(t *testing.T) {
	t.Parallel()
	old, fresh, other := signingKey("old", 1), signingKey("new", 2), signingKey("other", 3)
	at := time.Unix(exampleTime, 0)
	for name, c := range map[string]struct {
		change    func(h http.Header)
		body      string
		keys      []SigningKey
		now       time.Time
		tolerance time.Duration
		want      string
	}{
		"both keys":                {keys: []SigningKey{fresh, old}, want: "new"},
		"receiver has the old key": {keys: []SigningKey{old}, want: "old"},
		"receiver has the new key": {keys: []SigningKey{other, fresh}, want: "new"},
		"receiver has another key": {keys: []SigningKey{other}},
		"no keys":                  {keys: []SigningKey{}},
		"key id of another":        {keys: []SigningKey{{ID: "new", Secret: other.Secret}}},
		"empty secret": {keys: []SigningKey{{ID: "empty"}}, change: func(h http.Header) {
			h.Set(HeaderSignature, SigningKey{}.signature(exampleID, "1614265330", []byte(exampleBody)))
		}},
		"body changed":                 {body: `{"test": 2432232315}`},
		"id changed":                   {change: func(h http.Header) { h.Set(HeaderWebhookID, "msg_other") }},
		"time changed":                 {change: func(h http.Header) { h.Set(HeaderTimestamp, "1614265331") }},
		"id with a full stop":          {change: func(h http.Header) { h.Set(HeaderWebhookID, "a.b") }},
		"no id":                        {change: func(h http.Header) { h.Del(HeaderWebhookID) }},
		"no time":                      {change: func(h http.Header) { h.Del(HeaderTimestamp) }},
		"no signature":                 {change: func(h http.Header) { h.Del(HeaderSignature) }},
		"two ids":                      {change: func(h http.Header) { h.Add(HeaderWebhookID, exampleID) }},
		"key id header is only hint":   {change: func(h http.Header) { h.Set(HeaderKeyID, "made up") }, want: "new"},
		"unknown versions beside":      {change: func(h http.Header) { h.Set(HeaderSignature, "v1a,AAAA v9,BBBB x "+h.Get(HeaderSignature)) }, want: "new"},
		"other version":                {change: func(h http.Header) { h.Set(HeaderSignature, strings.ReplaceAll(h.Get(HeaderSignature), "v1,", "v2,")) }},
		"too many signatures":          {change: func(h http.Header) { h.Set(HeaderSignature, strings.Repeat("v1,AA ", MaxKeys)+h.Get(HeaderSignature)) }},
		"time in words":                {change: func(h http.Header) { h.Set(HeaderTimestamp, "now") }},
		"time with a sign":             {change: func(h http.Header) { h.Set(HeaderTimestamp, "+1614265330") }},
		"time before everything":       {change: func(h http.Header) { h.Set(HeaderTimestamp, "-9223372036854775808") }},
		"time after everything":        {change: func(h http.Header) { h.Set(HeaderTimestamp, "9223372036854775807") }},
		"5 minutes late":               {now: at.Add(DefaultTolerance), want: "new"},
		"later than 5 minutes":         {now: at.Add(DefaultTolerance + time.Second)},
		"5 minutes early":              {now: at.Add(-DefaultTolerance), want: "new"},
		"earlier than 5 minutes":       {now: at.Add(-DefaultTolerance - time.Second)},
		"late, with wider tolerance":   {now: at.Add(time.Hour), tolerance: time.Hour, want: "new"},
		"late, with tighter tolerance": {now: at.Add(time.Minute), tolerance: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := exampleRequest(t, fresh, old)
			if c.change != nil {
				c.change(h)
			}
			if c.keys == nil {
				c.keys = []SigningKey{fresh, old}
			}
			if c.body == "" {
				c.body = exampleBody
			}
			if c.now.IsZero() {
				c.now = at
			}
			got, err := VerifySignature(h, []byte(c.body), c.keys, c.now, c.tolerance)
			if got != c.want || (err == nil) != (c.want != "") {
				t.Fatalf("got %q, %v, want %q", got, err, c.want)
			}
			if err != nil && !errors.Is(err, ErrSignature) {
				t.Errorf("%v is no ErrSignature", err)
			}
		})
	}
}

func TestSignRefusesKeys(t *testing.T) {
	t.Parallel()
	many := make([]SigningKey, MaxKeys+1)
	for i := range many {
		many[i] = signingKey(fmt.Sprint("k", i), 1)
	}
	for name, keys := range map[string][]SigningKey{
		"none":         nil,
		"too many":     many,
		"short secret": {{ID: "k", Secret: make([]byte, MinSecret-1)}},
		"no id":        {{Secret: make([]byte, MinSecret)}},
		"space in id":  {{ID: "a b", Secret: make([]byte, MinSecret)}},
		"newline":      {{ID: "a\r\nx: y", Secret: make([]byte, MinSecret)}},
		"long id":      {{ID: strings.Repeat("k", MaxKeyID+1), Secret: make([]byte, MinSecret)}},
	} {
		h := http.Header{}
		if err := Sign(h, "id", time.Unix(0, 0), nil, keys); err == nil || len(h) > 0 {
			t.Errorf("%s: error %v, headers %v", name, err, h)
		}
	}
}

func TestSigningKeyHidesItsSecret(t *testing.T) {
	t.Parallel()
	const secret = "do-not-show-this-secret-to-anybody"
	k := SigningKey{ID: "k1", Secret: []byte(secret)}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("m", "key", k, "keys", []SigningKey{k})
	slog.New(slog.NewTextHandler(&log, nil)).Info("m", "key", k, "keys", []SigningKey{k}, "in", struct{ K *SigningKey }{&k})
	text, err := json.Marshal(struct{ K SigningKey }{k})
	if err != nil {
		t.Fatal(err)
	}
	shown := log.String() + string(text)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		shown += fmt.Sprintf(verb+verb, k, []SigningKey{k}) + fmt.Sprintf(verb, &k)
	}
	_, err = ParseSigningKey("k1", "whsec_"+secret+"!")
	if err == nil {
		t.Error("a secret that is not base64 was taken")
	}
	shown += fmt.Sprint(err)
	for _, form := range []string{secret, fmt.Sprintf("%x", secret), fmt.Sprint([]byte(secret)), "ZG8tbm90LXNob3c"} {
		if strings.Contains(shown, form) {
			t.Errorf("%q is shown in %s", form, shown)
		}
	}
	if !strings.Contains(shown, `signing key "k1"`) {
		t.Errorf("the id is not shown in %s", shown)
	}
}

func FuzzVerifySignature(f *testing.F) {
	key := signingKey("k", 7)
	now := time.Unix(exampleTime, 0)
	f.Add(exampleID, "1614265330", exampleSignature, []byte(exampleBody))
	f.Add("id", "1614265330", key.signature("id", "1614265330", []byte("x")), []byte("x"))
	f.Add("", "-1", "v1, v1,, ,", []byte(nil))
	f.Fuzz(func(t *testing.T, id, timestamp, signatures string, body []byte) {
		h := http.Header{}
		h.Set(HeaderWebhookID, id)
		h.Set(HeaderTimestamp, timestamp)
		h.Set(HeaderSignature, signatures)
		keyID, err := VerifySignature(h, body, []SigningKey{key}, now, time.Minute)
		signed := strings.Contains(signatures, key.signature(id, timestamp, body))
		switch {
		case err == nil && (keyID != "k" || !signed):
			t.Fatalf("%q was taken as signed by %q", signatures, keyID)
		case err != nil && (keyID != "" || !errors.Is(err, ErrSignature)):
			t.Fatalf("got %q, %v", keyID, err)
		}
		// A signature for a valid id and any body is accepted.
		if id == "" || strings.Contains(id, ".") {
			return
		}
		testenv.OK(t, Sign(h, id, now, body, []SigningKey{key}))
		testenv.Must(VerifySignature(h, body, []SigningKey{key}, now, 0))(t)
	})
}
