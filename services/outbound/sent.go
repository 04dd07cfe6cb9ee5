package outbound

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"sync"

	"github.com/vibedata/roundhouse/outbox"
)

// Sent is the identification that a request sent to its receiver, for records: none of it is secret.
type Sent struct {
	// Target is the scheme and the host.
	Target string `json:"target"`
	// Audience is the application that the token was for.
	Audience string `json:"audience,omitempty"`
	// SignedBy are the ids of the keys that signed.
	SignedBy []string `json:"signedBy,omitempty"`
	// ClientCertificate is the SHA-256 fingerprint of the presented certificate, in hex.
	ClientCertificate string `json:"clientCertificate,omitempty"`
	// WebhookID and Idempotency are the headers webhook-id and Idempotency-Key.
	WebhookID   string `json:"webhookId,omitempty"`
	Idempotency string `json:"idempotency,omitempty"`
}

// String returns it in one line.
func (s Sent) String() string {
	parts := []string{"to " + s.Target}
	for _, part := range []struct{ name, value string }{
		{"with a token for ", s.Audience}, {"signed by ", strings.Join(s.SignedBy, ", ")}, {"with the certificate ", s.ClientCertificate},
		{"webhook-id ", s.WebhookID}, {"idempotency key ", s.Idempotency},
	} {
		if part.value != "" {
			parts = append(parts, part.name+part.value)
		}
	}
	return strings.Join(parts, ", ")
}

// As returns the record of a request that another attempt sent with an Idempotency-Key, with the same identification as
// this one.
func (s Sent) As(idempotencyKey string) Sent {
	s.Idempotency, s.WebhookID = idempotencyKey, ""
	if len(s.SignedBy) > 0 {
		s.WebhookID = WebhookID(idempotencyKey)
	}
	return s
}

// WebhookID returns the webhook-id of a request with an Idempotency-Key: the key itself, or its hash where the key has
// a full stop, which separates the signed parts.
func WebhookID(idempotencyKey string) string {
	if !strings.Contains(idempotencyKey, ".") {
		return idempotencyKey
	}
	sum := sha256.Sum256([]byte(idempotencyKey))
	return hex.EncodeToString(sum[:])
}

// SentBy returns the signers and ids in the headers of a request. A token and a certificate are not included.
func SentBy(r *http.Request) *Sent {
	return &Sent{Target: r.URL.Scheme + "://" + r.URL.Host, SignedBy: strings.Fields(r.Header.Get(outbox.HeaderKeyID)),
		WebhookID: r.Header.Get(outbox.HeaderWebhookID), Idempotency: r.Header.Get(outbox.HeaderIdempotencyKey)}
}

type recorderKey struct{}

// recorder keeps the last request.
type recorder struct {
	mu   sync.Mutex
	last *Sent
}

// Record makes clients record their requests with the context. last returns the last request that got an answer, nil
// for none.
func Record(ctx context.Context) (recorded context.Context, last func() *Sent) {
	r := &recorder{}
	return context.WithValue(ctx, recorderKey{}, r), func() *Sent {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.last
	}
}

// note records an answered request.
func note(r *http.Request, audience, fingerprint string) {
	to, ok := r.Context().Value(recorderKey{}).(*recorder)
	if !ok {
		return
	}
	to.mu.Lock()
	defer to.mu.Unlock()
	to.last = SentBy(r)
	to.last.Audience, to.last.ClientCertificate = audience, fingerprint
}
