package console

import (
	"context"
	"fmt"
	"net/url"
	"sync"
	"time"
)

const (
	// dayHours is how many hours the pictures of a day have, the one that is under way included.
	dayHours = 24
	// dayPages bounds what is read for a picture, and dayPage is how much a page has.
	dayPages, dayPage = 3, 100

	// dayAge is how old a picture may be: to count costs more than all else on its page.
	dayAge = 5 * time.Minute
	// maxDays bounds the pictures that are kept: two for each tenant whose people look.
	maxDays = 200

	sparkWidth, sparkHeight = 480, 64
	sparkStep               = sparkWidth / dayHours
)

// daySeries are how many of something there were in each hour of a day. Where there are more than a picture reads, the earliest
// hours are not known.
type daySeries struct {
	Name string
	// Hours are the latest last.
	Hours []dayHour
	Total int
	// AtLeast says that there may be more, and Since is from when on they are counted then.
	AtLeast bool
	Since   time.Time
	// CountedAt is when they were counted.
	CountedAt time.Time
}

// dayHour is an hour of a day; AtLeast says that there may be more in it, and Unknown that nothing of it was looked at.
type dayHour struct {
	Begins           time.Time
	Count            int
	AtLeast, Unknown bool
}

// Known says whether something of the hour was looked at.
func (h dayHour) Known() bool { return !h.Unknown }

// Label names the hour.
func (h dayHour) Label() string { return h.Begins.UTC().Format("15:04") }

func (s daySeries) empty() bool { return s.Total == 0 }

// Bars are the picture of the hours that are known.
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

// Unknown is how wide the part of the picture is that is not known.
func (s daySeries) Unknown() int {
	n := 0
	for _, h := range s.Hours {
		if h.Unknown {
			n++
		}
	}
	return n * sparkStep
}

// Width is that of the picture.
func (daySeries) Width() int { return sparkWidth }

// Height is how high the picture is.
func (daySeries) Height() int { return sparkHeight }

// Title is the picture in words.
func (s daySeries) Title() string {
	if s.AtLeast {
		return fmt.Sprintf("%s of a day, by hour: at least %d, of which the latest are counted", s.Name, s.Total)
	}
	return fmt.Sprintf("%s of a day, by hour: %d", s.Name, s.Total)
}

// hoursUntil are the hours of a day that ends with the one that is under way.
func hoursUntil(now time.Time) []dayHour {
	hours := make([]dayHour, dayHours)
	for n := range hours {
		hours[n].Begins = now.UTC().Truncate(time.Hour).Add(time.Duration(n-dayHours+1) * time.Hour)
	}
	return hours
}

// count adds what happened at a time.
func (s *daySeries) count(at time.Time) {
	if n := int(at.Sub(s.Hours[0].Begins) / time.Hour); !at.Before(s.Hours[0].Begins) && n < len(s.Hours) {
		s.Hours[n].Count++
		s.Total++
	}
}

// endsAt says that nothing before a time was looked at.
func (s *daySeries) endsAt(at time.Time) {
	s.AtLeast, s.Since = true, at
	for n := range s.Hours {
		h := &s.Hours[n]
		h.Unknown = !h.Begins.Add(time.Hour).After(at)
		h.AtLeast = !h.Unknown && h.Begins.Before(at)
	}
}

// day counts what a list of the API, newest first, has of each hour of the last day, for so many pages at most. at gives the time of
// an item.
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

// days keeps what was counted, for all who see the same. It can be used by several goroutines.
type days struct {
	mu   sync.Mutex
	kept map[string]daySeries
}

// get is a series that is not older than dayAge, which count counts if there is none. What could not be counted is not kept.
func (d *days) get(key string, now time.Time, count func() (daySeries, error)) (daySeries, error) {
	d.mu.Lock()
	s, ok := d.kept[key]
	d.mu.Unlock()
	if ok && now.Sub(s.CountedAt) < dayAge {
		return s, nil
	}
	s, err := count()
	if err != nil || s.empty() { // nothing is counted quickly, and the first of something is news
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

// keptDay counts a day for all who see what belongs to the tenant of whoever looks, or all if there is none.
func (v *visit) keptDay(name string, count func() (daySeries, error)) (daySeries, error) {
	return v.console.days.get(name+"\n"+string(v.me.Scope), v.console.config.Now(), count)
}

// resultsOfDay are what engines have done.
func resultsOfDay(ctx context.Context, v *visit) (daySeries, error) {
	return v.keptDay("results", func() (daySeries, error) {
		return day(ctx, v, "Results", "/api/history", func(i struct {
			At time.Time `json:"createdAtUtc"`
		}) time.Time {
			return i.At
		})
	})
}

// lettersOfDay are the dead letters, by when they failed last.
func lettersOfDay(ctx context.Context, v *visit) (daySeries, error) {
	return v.keptDay("letters", func() (daySeries, error) {
		return day(ctx, v, "Dead letters", "/api/dlq", func(i struct {
			At time.Time `json:"lastFailureAtUtc"`
		}) time.Time {
			return i.At
		})
	})
}
