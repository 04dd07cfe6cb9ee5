package sqlsource

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/internal/testenv"
)

// For any zone, no later clock reading is below the bound of a time, and the bound is not further back than the clocks
// are set.
func TestWallBound(t *testing.T) {
	t.Parallel()
	zones := []string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "Africa/Casablanca", "Pacific/Apia", "Asia/Gaza"}
	random := rand.New(rand.NewPCG(1, 2))
	for _, name := range zones {
		zone := testenv.Must(time.LoadLocation(name))(t)
		wall := func(at time.Time) string { return at.In(zone).Format("2006-01-02T15:04:05.000000") }
		check := func(at time.Time) {
			bound := wallBound(at, zone)
			text := bound.Format("2006-01-02T15:04:05.000000")
			for range 20 {
				later := at.Add(time.Duration(random.Int64N(int64(40 * 24 * time.Hour))))
				if random.IntN(2) == 0 {
					later = at.Add(time.Duration(random.Int64N(int64(2 * time.Hour))))
				}
				if shown := wall(later); shown < text {
					t.Fatalf("%s: at %v all before %s is given; at %v clocks show %s", name, at.UTC(), text, later.UTC(), shown)
				}
			}
			if behind := at.Sub(time.Date(bound.Year(), bound.Month(), bound.Day(), bound.Hour(), bound.Minute(), bound.Second(), bound.Nanosecond(), zone)); wall(at) < text || behind > 25*time.Hour {
				t.Fatalf("%s: at %v the bound is %s", name, at, text)
			}
		}
		at := time.Date(2010, 1, 1, 0, 0, 0, 0, time.UTC)
		for at.Year() < 2026 { // around each change of the clocks, and elsewhere
			_, change := at.In(zone).ZoneBounds()
			if change.IsZero() {
				break
			}
			for range 30 {
				check(change.Add(time.Duration(random.Int64N(int64(4*time.Hour))) - 2*time.Hour))
			}
			at = change
		}
		for range 200 {
			check(time.Unix(random.Int64N(4e9), 0))
		}
	}
}
