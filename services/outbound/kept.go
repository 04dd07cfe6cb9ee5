package outbound

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/vibedata/roundhouse/services/secrets"
)

const (
	// fresh is how long a value is used before it is looked up again: a new version takes effect after this time.
	fresh = 5 * time.Minute
	// stale is how long it is used when the look-up fails: no longer, since it may have been revoked.
	stale = time.Hour
	// pause is the time between two failing look-ups while an older value is usable, and between two that find nothing:
	// callers cannot cause one look-up per request.
	pause = 15 * time.Second
)

// Absent reports whether an error means that the vault has no such secret, or no enabled version of it.
func Absent(err error) bool {
	return errors.Is(err, secrets.ErrNotFound) || errors.Is(err, secrets.ErrNoVersion)
}

// kept caches a value of the vault for minutes. It is safe for concurrent use.
type kept[T any] struct {
	what string // in log lines
	look func(ctx context.Context) (T, error)
	log  *slog.Logger
	now  func() time.Time

	mu       sync.Mutex
	found    T
	there    bool
	foundAt  time.Time
	failedAt time.Time
	missing  error // the error of a missing value at failedAt; nil for none
}

func keep[T any](what string, c Config, look func(context.Context) (T, error)) *kept[T] {
	return &kept[T]{what: what, look: look, log: c.Log, now: c.Now}
}

// get returns the cached value, and looks it up when it is due.
func (k *kept[T]) get(ctx context.Context) (T, error) {
	k.mu.Lock() // concurrent calls share one look-up
	defer k.mu.Unlock()
	now := k.now()
	usable := k.there && now.Sub(k.foundAt) < stale
	if k.there && now.Sub(k.foundAt) < fresh || usable && now.Sub(k.failedAt) < pause {
		return k.found, nil
	}
	var none T
	if !usable && k.missing != nil && now.Sub(k.failedAt) < pause {
		return none, k.missing
	}
	found, err := k.look(ctx)
	k.missing = nil
	switch {
	case err == nil:
		k.found, k.there, k.foundAt = found, true, now
		return found, nil
	case usable:
		k.failedAt = now
		k.log.WarnContext(ctx, "not refreshed from the vault: what was there before is used", "what", k.what, "since", k.foundAt, "error", err.Error())
		return k.found, nil
	case Absent(err):
		k.missing, k.failedAt = err, now
		k.log.WarnContext(ctx, "secret not found in the vault", "what", k.what, "error", err.Error())
		return none, err
	default:
		return none, err
	}
}
