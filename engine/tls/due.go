package tls

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/binary"
	"time"
)

// renewAt is when a certificate is due: a moment of the window that the authority names, else after a share of its life.
// An authority that cannot be asked does not hold up a certificate that is not due.
func (s *Steps) renewAt(ctx context.Context, leaf *x509.Certificate) (time.Time, error) {
	from, to, ok, err := s.config.Authority.Renewal(ctx, leaf.Raw)
	if ctx.Err() != nil {
		return time.Time{}, ctx.Err()
	}
	if err != nil || !ok || to.Before(from) {
		life := leaf.NotAfter.Sub(leaf.NotBefore)
		return leaf.NotBefore.Add(time.Duration(float64(life) * s.config.RenewAfter)).UTC().Truncate(time.Second), nil
	}
	return from.Add(time.Duration(float64(to.Sub(from)) * place(leaf))).UTC().Truncate(time.Second), nil
}

// place is where in a window a certificate is renewed, 0 to 1. It spreads certificates evenly, as the authority wishes, and
// is always the same for one.
func place(leaf *x509.Certificate) float64 {
	sum := sha256.Sum256(leaf.Raw)
	return float64(binary.BigEndian.Uint32(sum[:])) / (1 << 32)
}
