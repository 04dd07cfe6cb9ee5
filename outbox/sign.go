package outbox

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Headers of a signed request: the first three are those of Standard Webhooks 1.0. HeaderKeyID lists the ids of the
// keys, in the order of the signatures and separated by spaces like these. It is a hint that no signature covers.
const (
	HeaderWebhookID = "webhook-id"
	HeaderTimestamp = "webhook-timestamp"
	HeaderSignature = "webhook-signature"
	HeaderKeyID     = "webhook-key-id"
)

const (
	// DefaultTolerance is how far a signature's time may be from the receiver's, unless the receiver says otherwise.
	DefaultTolerance = 5 * time.Minute
	// MinSecret is the least length of a signing secret in bytes.
	MinSecret = 24
	// MaxKeys is the most keys that a request is signed with, and the most signatures that VerifySignature looks at.
	MaxKeys = 8
	// MaxKeyID is the length of a key id in bytes.
	MaxKeyID = 128

	secretPrefix     = "whsec_"
	signatureVersion = "v1"
)

// ErrSignature: a request is not signed by any of the keys, or not now. The request must not be believed.
var ErrSignature = errors.New("signature not valid")

// SigningKey is a secret that sender and receiver share. However it is formatted or logged, it shows its id alone.
type SigningKey struct {
	// ID names the key, a version in the secret store for one: 1 to MaxKeyID printable ASCII characters, no space.
	ID string
	// Secret has MinSecret bytes or more.
	Secret []byte `json:"-"`
}

// SigningKeys finds the keys to sign with, the newest first. During a rotation there are two, so that a receiver may
// hold the old one, the new one, or both. It is asked for every attempt and has to cache what is dear.
type SigningKeys func(ctx context.Context) ([]SigningKey, error)

// ParseSigningKey reads a secret in the form in which Standard Webhooks hands secrets out: whsec_ and base64; the
// prefix may be missing. The error does not show the secret.
func ParseSigningKey(id, secret string) (SigningKey, error) {
	raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, secretPrefix))
	if err != nil {
		return SigningKey{}, fmt.Errorf("signing key %.128q: the secret is not %s followed by base64", id, secretPrefix)
	}
	k := SigningKey{ID: id, Secret: raw}
	return k, k.Validate()
}

// Validate names what is wrong with a key.
func (k SigningKey) Validate() error {
	var errs []error
	if k.ID == "" || len(k.ID) > MaxKeyID || strings.ContainsFunc(k.ID, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		errs = append(errs, fmt.Errorf("signing key id %.128q: use 1 to %d printable ASCII characters without space", k.ID, MaxKeyID))
	}
	if len(k.Secret) < MinSecret {
		errs = append(errs, fmt.Errorf("signing key %.128q: the secret has %d bytes, at least %d are needed", k.ID, len(k.Secret), MinSecret))
	}
	return errors.Join(errs...)
}

// Format writes the id for every verb, so that no log or error shows the secret.
func (k SigningKey) Format(s fmt.State, _ rune) {
	_, _ = io.WriteString(s, "signing key "+strconv.Quote(k.ID))
}

// LogValue is the id.
func (k SigningKey) LogValue() slog.Value { return slog.StringValue(k.ID) }

// signature is one entry of HeaderSignature (Standard Webhooks, "Signature scheme"). The id must hold no full stop,
// which would let one request's parts be read as another's.
func (k SigningKey) signature(id, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, k.Secret)
	_, _ = io.WriteString(mac, id+"."+timestamp+".")
	_, _ = mac.Write(body)
	return signatureVersion + "," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// sign puts the signature headers of all keys.
func sign(h http.Header, id string, at time.Time, body []byte, keys []SigningKey) error {
	if len(keys) == 0 || len(keys) > MaxKeys {
		return fmt.Errorf("sign: %d keys, 1 to %d are needed", len(keys), MaxKeys)
	}
	timestamp := strconv.FormatInt(at.Unix(), 10)
	signatures, ids := make([]string, len(keys)), make([]string, len(keys))
	for i, k := range keys {
		if err := k.Validate(); err != nil {
			return fmt.Errorf("sign: %w", err)
		}
		signatures[i], ids[i] = k.signature(id, timestamp, body), k.ID
	}
	h.Set(HeaderWebhookID, id)
	h.Set(HeaderTimestamp, timestamp)
	h.Set(HeaderSignature, strings.Join(signatures, " "))
	h.Set(HeaderKeyID, strings.Join(ids, " "))
	return nil
}

// VerifySignature is for receivers: it says which of their keys a request was signed with, or returns an ErrSignature.
// body is the request's body as it came, not parsed and written again. now is the receiver's clock; a tolerance of zero
// is DefaultTolerance. Any sender of Standard Webhooks with symmetric keys can be verified.
//
// What is signed is webhook-id, webhook-timestamp and the body. A receiver that depends on the attributes of a
// CloudEvent beyond its id (type, tenantid) takes the structured mode, which has them in the body. And it remembers
// webhook-id for as long as the tolerance, because within it a request can be replayed.
func VerifySignature(h http.Header, body []byte, keys []SigningKey, now time.Time, tolerance time.Duration) (keyID string, err error) {
	id, errID := single(h, HeaderWebhookID)
	timestamp, errTime := single(h, HeaderTimestamp)
	list, errList := single(h, HeaderSignature)
	if err := errors.Join(errID, errTime, errList); err != nil {
		return "", fmt.Errorf("verify request: %w: %w", ErrSignature, err)
	}
	if strings.Contains(id, ".") {
		return "", fmt.Errorf("verify request: %w: %s holds a full stop", ErrSignature, HeaderWebhookID)
	}
	if err := checkTime(timestamp, now, tolerance); err != nil {
		return "", fmt.Errorf("verify request %.128q: %w: %w", id, ErrSignature, err)
	}
	given := strings.Fields(list)
	if len(given) > MaxKeys {
		return "", fmt.Errorf("verify request %.128q: %w: %d signatures of at most %d", id, ErrSignature, len(given), MaxKeys)
	}
	for _, k := range keys {
		// An empty secret would let anybody sign.
		if k.Validate() != nil {
			continue
		}
		want := []byte(k.signature(id, timestamp, body))
		for _, g := range given {
			if hmac.Equal(want, []byte(g)) {
				return k.ID, nil
			}
		}
	}
	return "", fmt.Errorf("verify request %.128q: %w: none of %d signatures is of one of the %d keys", id, ErrSignature, len(given), len(keys))
}

// single refuses a header that is there twice: who reads the other one would believe what was not signed.
func single(h http.Header, name string) (string, error) {
	values := h.Values(name)
	if len(values) != 1 || values[0] == "" {
		return "", fmt.Errorf("%s is there %d times, once is needed", name, len(values))
	}
	return values[0], nil
}

func checkTime(timestamp string, now time.Time, tolerance time.Duration) error {
	if tolerance == 0 {
		tolerance = DefaultTolerance
	}
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || strconv.FormatInt(seconds, 10) != timestamp || seconds < 0 {
		return fmt.Errorf("%s is not a number of seconds", HeaderTimestamp)
	}
	// Sub saturates, so a time from beyond what Duration holds is refused as well.
	if off := now.Sub(time.Unix(seconds, 0)); off > tolerance || off < -tolerance {
		return fmt.Errorf("%s is %v off, at most %v is allowed", HeaderTimestamp, off.Truncate(time.Second), tolerance)
	}
	return nil
}
