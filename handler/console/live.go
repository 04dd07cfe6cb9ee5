package console

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// Interval is the default polling interval of a list. Soon is the minimum, and Late that of pages with a higher
	// storage cost.
	Interval, Soon, Late = 15 * time.Second, 5 * time.Second, time.Minute
	// maxShared bounds how long the result of a poll is shared, regardless of a browser's request.
	maxShared = 45 * time.Second
	// maxLooks bounds the cached polls.
	maxLooks = 1000
)

// seen is the API's answers for a page, which distinguish it from a later one at the same address. Several goroutines
// can use it.
type seen struct {
	mu      sync.Mutex
	answers []string
	// first is the first request, as a path of the API with its query.
	first string
}

// note adds an answer, without the correlation id of the request and the query: the query of a page varies by the
// current time only.
func (s *seen) note(address string, a *answer, e envelope) {
	if s == nil {
		return
	}
	sum := sha256.New()
	path, _, _ := strings.Cut(address, "?")
	sum.Write([]byte(path + "\n" + strconv.Itoa(a.status) + "\n"))
	sum.Write(e.Data)
	if e.Error != nil {
		sum.Write([]byte("\n" + e.Error.Code + "\n" + string(e.Error.Message)))
	}
	s.add(hex.EncodeToString(sum.Sum(nil)), address)
}

// noteText adds the news of an answer that also has parts which change by themselves, such as times.
func (s *seen) noteText(path, text string) {
	if s == nil {
		return
	}
	sum := sha256.Sum256([]byte(path + "\n\n" + text))
	s.add(hex.EncodeToString(sum[:]), path)
}

func (s *seen) add(answer, address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers = append(s.answers, answer)
	if s.first == "" {
		s.first = address
	}
}

// asked returns the first API request, "" for none.
func (s *seen) asked() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.first
}

// tag returns the ETag of the answers, in any order, for a page of an address that polls after a time.
func (s *seen) tag(address string, again time.Duration) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := sha256.Sum256([]byte(address + "\n" + again.String() + "\n" + strings.Join(slices.Sorted(slices.Values(s.answers)), "\n")))
	return `W/"` + hex.EncodeToString(sum[:16]) + `"`
}

// looksAgain reports whether a browser polls for news of a page that it has.
func (v *visit) looksAgain() bool { return v.r.Header.Get("If-None-Match") != "" }

// aside requests data besides the page's subject, such as the choices of a form: its changes are not news, and a poll
// does not need it.
func (v *visit) aside(ask func(*visit) error) error {
	if v.looksAgain() {
		return nil
	}
	other := *v
	other.api = v.api.unnoted()
	return ask(&other)
}

// again returns the interval at which the browser polls a page, 0 for never.
func (p page) again() time.Duration {
	if p.code != "" || p.status != 0 && p.status != http.StatusOK {
		return 0
	}
	return max(p.live, p.refresh)
}

// looks caches the time at which pages were found unchanged: a poll of the same page shortly after is answered without
// storage. A page is named by its ETag, so only users who have seen it can name it. Several goroutines can use it.
type looks struct {
	mu sync.Mutex
	at map[string]time.Time
}

// note records that a page is current.
func (l *looks) note(address, tag string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at == nil {
		l.at = map[string]time.Time{}
	}
	if len(l.at) >= maxLooks {
		for name, at := range l.at {
			if now.Sub(at) > maxShared {
				delete(l.at, name)
			}
		}
	}
	if len(l.at) < maxLooks { // otherwise this poll is not shared
		l.at[tag+address] = now
	}
}

// holds reports whether a page was current within a time.
func (l *looks) holds(address, tag string, within time.Duration, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, ok := l.at[tag+address]
	return ok && now.Sub(at) < min(within, maxShared)
}

// maxAge returns the maximum age of an answer in a request.
func maxAge(r *http.Request) time.Duration {
	for directive := range strings.SplitSeq(r.Header.Get("Cache-Control"), ",") {
		if value, ok := strings.CutPrefix(strings.TrimSpace(directive), "max-age="); ok {
			if seconds, err := strconv.Atoi(value); err == nil && seconds > 0 {
				return min(time.Duration(min(seconds, 3600))*time.Second, maxShared)
			}
		}
	}
	return 0
}

// looked returns the key of a poll: the address, and the scope of the user.
func (v *visit) looked() string { return string(v.me.Scope) + "\n" + v.r.URL.RequestURI() }

// unchanged reports, without storage, that the browser has the current page, as another recent poll has found.
func (c *Console) unchanged(v *visit, r route) bool {
	return v.looksAgain() && v.may(r.Permission) && c.looks.holds(v.looked(), v.r.Header.Get("If-None-Match"), maxAge(v.r), c.config.Now())
}

// tell sets the ETag of a page that polls, and reports whether the browser has the current one.
func (c *Console) tell(w http.ResponseWriter, v *visit, p page) (tag string, same bool) {
	if p.again() == 0 {
		return "", false
	}
	tag = v.seen.tag(v.r.URL.RequestURI(), p.again())
	w.Header().Set("ETag", tag)
	c.looks.note(v.looked(), tag, c.config.Now())
	return tag, v.r.Header.Get("If-None-Match") == tag
}

// visitor wraps a route's visitor with the common parts.
func (c *Console) visitor(r route) visitor {
	return func(ctx context.Context, v *visit) (page, error) {
		if c.unchanged(v, r) {
			return page{same: true}, nil
		}
		return r.visit(ctx, v)
	}
}
