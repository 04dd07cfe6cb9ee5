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

	"github.com/vibedata/roundhouse/internal/keytext"
)

// These are the headers of a signed request. The first three are those of Standard Webhooks 1.0. HeaderKeyID lists the
// ids of the keys, in the order of the signatures and also separated by spaces. It is a hint that no signature covers.
const (
	HeaderWebhookID = "webhook-id"
	HeaderTimestamp = "webhook-timestamp"
	HeaderSignature = "webhook-signature"
	HeaderKeyID     = "webhook-key-id"
)

const (
	// DefaultTolerance is how far the time of a signature may be from the receiver's clock, by default.
	DefaultTolerance = 5 * time.Minute
	// MinSecret is the minimum length of a signing secret in bytes.
	MinSecret = 24
	// MaxKeys bounds the keys with which a request is signed, and the signatures that VerifySignature checks.
	MaxKeys = 8
	// MaxKeyID bounds the length of a key id in bytes.
	MaxKeyID = 128

	signatureVersion = "v1"
)

// ErrSignature means that the request is not signed with any of the keys, or not at this time. It must not be trusted.
var ErrSignature = errors.New("signature not valid")

// SigningKey is a secret that sender and receiver share. Formatting or logging it shows only its id.
type SigningKey struct {
	// ID names the key, for example the version in the secret store: 1 to MaxKeyID printable ASCII characters without
	// spaces.
	ID string
	// Secret has MinSecret bytes or more.
	Secret []byte `json:"-"`
}

// SigningKeys returns the keys to sign with, newest first. During a rotation it returns two, so that a receiver may
// have the old one, the new one, or both. It is called for every attempt, so it has to cache expensive lookups.
type SigningKeys func(ctx context.Context) ([]SigningKey, error)

// ParseSigningKey parses a secret in the form of Standard Webhooks: whsec_ and base64 in either alphabet, with padding
// or without; or base64 alone, in the standard alphabet with its padding. White space around it is ignored. A secret
// that is not text is the key itself; any other secret is refused. The error does not quote the secret.
func ParseSigningKey(id, secret string) (SigningKey, error) {
	raw, err := keytext.Signing([]byte(secret))
	if err != nil {
		return SigningKey{}, fmt.Errorf("signing key %.128q: the secret cannot be read: %w", id, err)
	}
	k := SigningKey{ID: id, Secret: raw}
	return k, k.Validate()
}

// Validate returns the error of an invalid key.
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

// LogValue returns the id.
func (k SigningKey) LogValue() slog.Value { return slog.StringValue(k.ID) }

// signature returns one entry of HeaderSignature (Standard Webhooks, "Signature scheme"). The id must not contain a
// full stop, because then the parts of one request could be read as those of another.
func (k SigningKey) signature(id, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, k.Secret)
	_, _ = io.WriteString(mac, id+"."+timestamp+".")
	_, _ = mac.Write(body)
	return signatureVersion + "," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// Sign sets the signature headers for all keys, 1 to MaxKeys. The id names the request, the same in all its attempts;
// it has no full stop. body is the body exactly as sent. HTTP signs in the same way; Sign is for senders of other
// requests than events.
func Sign(h http.Header, id string, at time.Time, body []byte, keys []SigningKey) error {
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

// VerifySignature is for receivers: it returns the id of the key that signed a request, or an ErrSignature. body is the
// body of the request as received, not parsed and encoded again. now is the receiver's clock; a tolerance of zero is
// DefaultTolerance. It verifies requests of any sender that uses Standard Webhooks with symmetric keys.
//
// The signature covers webhook-id, webhook-timestamp and the body. A receiver that relies on other attributes of a
// CloudEvent than its id (type, tenantid) has to use the structured mode, in which they are part of the body. A
// receiver also has to remember webhook-id for the tolerance, because a request can be replayed within it.
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
		// With an empty secret, anyone could sign.
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

// single rejects a header that occurs twice, because another reader might trust the unsigned value.
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
	// Sub saturates, so a time beyond the range of Duration is refused as well.
	if off := now.Sub(time.Unix(seconds, 0)); off > tolerance || off < -tolerance {
		return fmt.Errorf("%s is %v off, at most %v is allowed", HeaderTimestamp, off.Truncate(time.Second), tolerance)
	}
	return nil
}
