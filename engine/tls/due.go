package tls

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/vibedata/roundhouse/services/certificates"
	"github.com/vibedata/roundhouse/tables"
)

// windowRow is the row of OrdersTable with the last window of a certificate.
const windowRow = "window"

// Properties of that row, in addition to propVersion.
const (
	propFrom        = "FromUtc"
	propTo          = "ToUtc"
	propExplanation = "Explanation"
	propAgain       = "AgainUtc"
)

// How often an authority is asked for a window (RFC 9773, section 4.3.3): as it requests, within these bounds.
const (
	askOften  = time.Minute
	askRarely = 24 * time.Hour
	askUsual  = 6 * time.Hour
)

// latestRenewal is the share of a certificate's life after which it is renewed, regardless of the authority.
const latestRenewal = 0.9

// maxExplanation bounds the address of an explanation, in bytes.
const maxExplanation = 500

// Window is when an authority wants a certificate renewed (RFC 9773). The zero value means that it gives none.
type Window struct {
	From, To time.Time
	// Explanation is the address of a page with the reason, "" for none.
	Explanation string
	// Again is when to ask again, zero when the authority gives no time.
	Again time.Time
}

// due is when a certificate is renewed, and the reason.
type due struct {
	at time.Time
	// because is empty for a certificate that is kept.
	because, explanation string
}

// due returns when and why a certificate is renewed.
func (s *Steps) due(ctx context.Context, now held, in RenewInput) (due, error) {
	key := certificates.KeyTypeOf(now.leaf.PublicKey)
	switch {
	case slices.Contains(in.Avoid, now.version.Version):
		return due{because: "its version is to be revoked"}, nil
	case in.Force:
		return due{because: "the message forces it"}, nil
	case in.KeyType != "" && in.KeyType != key:
		return due{because: fmt.Sprintf("its key is to be of type %s", in.KeyType)}, nil
	case !covers(now.leaf, in.Domains):
		return due{because: "it is not for all of the domains"}, nil
	}
	window, err := s.window(ctx, now)
	if err != nil {
		return due{}, err
	}
	if window.From.IsZero() {
		at := lifeOf(now.leaf, s.config.RenewAfter)
		return s.dueAt(at, at, "its life is nearly over", ""), nil
	}
	at := window.From.Add(time.Duration(float64(window.To.Sub(window.From)) * place(now.leaf))).UTC().Truncate(time.Second)
	if latest := lifeOf(now.leaf, latestRenewal); at.After(latest) {
		at = latest // the certificate must not expire before the authority's time
	}
	// A moment before the next check would be missed.
	return s.dueAt(at, at.Add(-s.config.LookEvery), "the authority wants it", window.Explanation), nil
}

// lifeOf returns the moment when a share of a certificate's life is over.
func lifeOf(leaf *x509.Certificate, share float64) time.Time {
	life := leaf.NotAfter.Sub(leaf.NotBefore)
	return leaf.NotBefore.Add(time.Duration(float64(life) * share)).UTC().Truncate(time.Second)
}

// dueAt returns a certificate that is due at a moment, and renewed from another one on.
func (s *Steps) dueAt(at, from time.Time, because, explanation string) due {
	d := due{at: at, explanation: explanation}
	if !s.config.Now().Before(from) {
		d.because = fmt.Sprintf("%s, %s", because, at.Format(time.RFC3339))
	}
	return d
}

// window returns the authority's window for a certificate. The authority is asked as often as it requests. When it
// cannot be asked, its last answer counts, initially none: that delays no certificate.
func (s *Steps) window(ctx context.Context, now held) (Window, error) {
	key := tables.Key{Partition: now.version.Name, Row: windowRow}
	row, err := s.config.Tables.Get(ctx, OrdersTable, key)
	if err != nil && !errors.Is(err, tables.ErrNotFound) {
		return Window{}, fmt.Errorf("look up the renewal window: %w", err)
	}
	var last Window
	if err == nil && row.Properties[propVersion] == now.version.Version {
		last = Window{From: row.Time(propFrom), To: row.Time(propTo), Again: row.Time(propAgain)}
		last.Explanation, _ = row.Properties[propExplanation].(string)
	}
	at := s.config.Now()
	if at.Before(last.Again) {
		return last, nil
	}
	window, err := s.config.Authority.Renewal(ctx, now.leaf.Raw)
	if ctx.Err() != nil {
		return Window{}, ctx.Err()
	}
	if err != nil || window.From.IsZero() || window.To.Before(window.From) {
		return last, nil
	}
	window.Again = askAgain(at, window.Again)
	window.Explanation = checkExplanation(window.Explanation)
	err = s.config.Tables.Apply(ctx, OrdersTable, tables.Upsert(tables.Entity{Key: key, Properties: map[string]any{propVersion: now.version.Version,
		propFrom: window.From.UTC(), propTo: window.To.UTC(), propExplanation: window.Explanation, propAgain: window.Again}}))
	if err != nil {
		return Window{}, fmt.Errorf("note the renewal window: %w", err)
	}
	return window, nil
}

// askAgain returns when to ask an authority again, given its requested time.
func askAgain(now, wanted time.Time) time.Time {
	pause := askUsual
	if !wanted.IsZero() {
		pause = min(max(wanted.Sub(now), askOften), askRarely)
	}
	return now.Add(pause).UTC()
}

// checkExplanation drops everything but the address of a web page, because users open it.
func checkExplanation(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || len(text) > maxExplanation {
		return ""
	}
	return text
}

// place returns where in a window a certificate is renewed, 0 to 1. It spreads certificates evenly, as the authority
// requests, and is constant for a certificate.
func place(leaf *x509.Certificate) float64 {
	sum := sha256.Sum256(leaf.Raw)
	return float64(binary.BigEndian.Uint32(sum[:])) / (1 << 32)
}
