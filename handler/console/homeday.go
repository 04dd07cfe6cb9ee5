package console

import (
	"context"
	"fmt"
	"net/url"
	"sync"
	"time"
)

const (
	// dayHours is the number of hours in the charts of a day, the current one included.
	dayHours = 24
	// dayPages bounds the pages that are read for a chart, and dayPage is their size.
	dayPages, dayPage = 3, 100

	// dayAge is the maximum age of a chart: counting costs more than the rest of its page.
	dayAge = 5 * time.Minute
	// maxDays bounds the cached charts: two for each tenant with users.
	maxDays = 200

	sparkWidth, sparkHeight = 480, 64
	sparkStep               = sparkWidth / dayHours
)

// daySeries are the numbers of entries in each hour of a day. If more exist than a chart reads, the earliest hours are
// unknown.
type daySeries struct {
	Name string
	// Hours are in ascending order.
	Hours []dayHour
	Total int
	// AtLeast means that more may exist, and Since is the start of the counted time then.
	AtLeast bool
	Since   time.Time
	// CountedAt is the time of the count.
	CountedAt time.Time
}

// dayHour is an hour of a day; AtLeast means that more may exist in it, and Unknown that none of it was read.
type dayHour struct {
	Begins           time.Time
	Count            int
	AtLeast, Unknown bool
}

// Known reports whether some of the hour was read.
func (h dayHour) Known() bool { return !h.Unknown }

// Label returns the name of the hour.
func (h dayHour) Label() string { return h.Begins.UTC().Format("15:04") }

func (s daySeries) empty() bool { return s.Total == 0 }

// Bars returns the bars of the known hours.
func (s daySeries) Bars() (bars []bar) {
	most := 1
	for _, h := range s.Hours {
		most = max(most, h.Count)
	}
	for n, h := range s.Hours {
		if h.Count > 0 {
			height := max(h.Count*sparkHeight/most, 2)
			bars = append(bars, bar{X: float64(n*sparkStep + 1), Width: sparkStep - 2, Y: sparkHeight - height, Height: height})
		}
	}
	return bars
}

// Unknown returns the width of the unknown part of the chart.
func (s daySeries) Unknown() int {
	n := 0
	for _, h := range s.Hours {
		if h.Unknown {
			n++
		}
	}
	return n * sparkStep
}

// Width returns that of the chart.
func (daySeries) Width() int { return sparkWidth }

// Height returns that of the chart.
func (daySeries) Height() int { return sparkHeight }

// Title describes the chart.
func (s daySeries) Title() string {
	if s.AtLeast {
		return fmt.Sprintf("%s of a day, by hour: at least %d, of which the latest are counted", s.Name, s.Total)
	}
	return fmt.Sprintf("%s of a day, by hour: %d", s.Name, s.Total)
}

// hoursUntil returns the hours of a day that ends with the current one.
func hoursUntil(now time.Time) []dayHour {
	hours := make([]dayHour, dayHours)
	for n := range hours {
		hours[n].Begins = now.UTC().Truncate(time.Hour).Add(time.Duration(n-dayHours+1) * time.Hour)
	}
	return hours
}

// count adds an entry at a time.
func (s *daySeries) count(at time.Time) {
	if n := int(at.Sub(s.Hours[0].Begins) / time.Hour); !at.Before(s.Hours[0].Begins) && n < len(s.Hours) {
		s.Hours[n].Count++
		s.Total++
	}
}

// endsAt records that nothing before a time was read.
func (s *daySeries) endsAt(at time.Time) {
	s.AtLeast, s.Since = true, at
	for n := range s.Hours {
		h := &s.Hours[n]
		h.Unknown = !h.Begins.Add(time.Hour).After(at)
		h.AtLeast = !h.Unknown && h.Begins.Before(at)
	}
}

// day counts the entries of an API list, newest first, in each hour of the last day, over a bounded number of pages. at
// returns the time of an item.
func day[T any](ctx context.Context, v *visit, name, path string, at func(T) time.Time) (daySeries, error) {
	now := v.console.config.Now()
	s := daySeries{Name: name, Hours: hoursUntil(now), CountedAt: now}
	query := url.Values{"fromDate": {s.Hours[0].Begins.Format(time.RFC3339)}, "limit": {fmt.Sprint(dayPage)}}
	for range dayPages {
		var list struct {
			Items []T    `json:"items"`
			Token string `json:"continuationToken"`
		}
		if err := v.api.get(ctx, path, query, &list); err != nil {
			return s, err
		}
		var last time.Time
		for _, i := range list.Items {
			last = at(i)
			s.count(last)
		}
		if list.Token == "" {
			s.AtLeast, s.Since = false, time.Time{}
			return s, nil
		}
		s.AtLeast, s.Since = true, last
		query.Set("continuationToken", list.Token)
	}
	s.endsAt(s.Since)
	return s, nil
}

// days caches counts, for all users who see the same. Several goroutines can use it.
type days struct {
	mu   sync.Mutex
	kept map[string]daySeries
}

// get returns a series that is not older than dayAge, and calls count without one. A failed count is not cached.
func (d *days) get(key string, now time.Time, count func() (daySeries, error)) (daySeries, error) {
	d.mu.Lock()
	s, ok := d.kept[key]
	d.mu.Unlock()
	if ok && now.Sub(s.CountedAt) < dayAge {
		return s, nil
	}
	s, err := count()
	if err != nil || s.empty() { // an empty count is cheap, and its first entry is news
		return s, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.kept == nil || len(d.kept) >= maxDays {
		d.kept = map[string]daySeries{}
	}
	d.kept[key] = s
	return s, nil
}

// keptDay counts a day for all users who see the data of the user's tenant, or all data without one.
func (v *visit) keptDay(name string, count func() (daySeries, error)) (daySeries, error) {
	return v.console.days.get(name+"\n"+string(v.me.Scope), v.console.config.Now(), count)
}

// resultsOfDay counts the results of engines.
func resultsOfDay(ctx context.Context, v *visit) (daySeries, error) {
	return v.keptDay("results", func() (daySeries, error) {
		return day(ctx, v, "Results", "/api/history", func(i struct {
			At time.Time `json:"createdAtUtc"`
		}) time.Time {
			return i.At
		})
	})
}

// lettersOfDay counts the dead letters by their last failures.
func lettersOfDay(ctx context.Context, v *visit) (daySeries, error) {
	return v.keptDay("letters", func() (daySeries, error) {
		return day(ctx, v, "Dead letters", "/api/dlq", func(i struct {
			At time.Time `json:"lastFailureAtUtc"`
		}) time.Time {
			return i.At
		})
	})
}
