package sqlsource

import (
	"context"
	"time"
)

// SetZone gives a source a zone without a name.
func SetZone(s *Source, zone *time.Location) { s.zone = zone }

// LookMySQL returns the oldest time that a look at the server's transactions found, zero for none, and whether it is
// known.
func LookMySQL(ctx context.Context, s *Source) (oldest time.Time, known bool, err error) {
	seen, err := lookMySQL(ctx, s)
	return seen.oldest, !seen.unknown, err
}
