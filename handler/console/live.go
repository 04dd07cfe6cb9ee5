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
	// Interval is after how long a list looks for news, unless somebody has chosen otherwise. Soon is after how long it may at the soonest, and
	// Late the same for pages that cost storage more.
	Interval, Soon, Late = 15 * time.Second, 5 * time.Second, time.Minute
	// maxShared bounds for how long one look holds for others, whatever a browser asks for.
	maxShared = 45 * time.Second
	// maxLooks bounds how many looks are kept.
	maxLooks = 1000
)

// seen is what the API has answered for a page, by which the page is told from a later one of the same address. It can be used by several
// goroutines.
type seen struct {
	mu      sync.Mutex
	answers []string
	// first is what was asked first, as a path of the API with its query.
	first string
}

// note adds an answer. The correlation id of a request is none of it, and neither is the query: that of one page says what time it is, at most.
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

// noteText adds what is news of an answer that has more in it, such as times, which change by themselves.
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

// asked is what the API was asked first, "" for nothing.
func (s *seen) asked() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.first
}

// tag is the ETag of what was answered, in whatever order, for a page of an address that asks again after a time.
func (s *seen) tag(address string, again time.Duration) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := sha256.Sum256([]byte(address + "\n" + again.String() + "\n" + strings.Join(slices.Sorted(slices.Values(s.answers)), "\n")))
	return `W/"` + hex.EncodeToString(sum[:16]) + `"`
}

// looksAgain says whether a browser asks for news of a page that it has.
func (v *visit) looksAgain() bool { return v.r.Header.Get("If-None-Match") != "" }

// aside asks for what a page has beside what it is about, such as the choices of a form: that it changes is no news, and who looks for news
// does not need it.
func (v *visit) aside(ask func(*visit) error) error {
	if v.looksAgain() {
		return nil
	}
	other := *v
	other.api = v.api.unnoted()
	return ask(&other)
}

// again is after how long the browser looks at a page again by itself, 0 for never.
func (p page) again() time.Duration {
	if p.code != "" || p.status != 0 && p.status != http.StatusOK {
		return 0
	}
	return max(p.live, p.refresh)
}

// looks are the pages that were found to be as they were, and when that was: who looks at the same shortly afterwards is told so without
// asking storage. A page is named by its ETag, so whoever names it has seen it. It can be used by several goroutines.
type looks struct {
	mu sync.Mutex
	at map[string]time.Time
}

// note keeps that a page is as its tag says.
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
	if len(l.at) < maxLooks { // else this look holds for nobody else
		l.at[tag+address] = now
	}
}

// holds says whether a page was as its tag says within a time.
func (l *looks) holds(address, tag string, within time.Duration, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, ok := l.at[tag+address]
	return ok && now.Sub(at) < min(within, maxShared)
}

// maxAge is how old an answer may be, as a request says it.
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

// looked names what somebody looks at: the address, for those who see what he sees.
func (v *visit) looked() string { return string(v.me.Scope) + "\n" + v.r.URL.RequestURI() }

// unchanged says, without asking storage, that the browser has a page as somebody else has seen it just now.
func (c *Console) unchanged(v *visit, r route) bool {
	return v.looksAgain() && v.may(r.Permission) && c.looks.holds(v.looked(), v.r.Header.Get("If-None-Match"), maxAge(v.r), c.config.Now())
}

// tell sets the ETag of a page that looks again, and says whether the browser has it as it is.
func (c *Console) tell(w http.ResponseWriter, v *visit, p page) (tag string, same bool) {
	if p.again() == 0 {
		return "", false
	}
	tag = v.seen.tag(v.r.URL.RequestURI(), p.again())
	w.Header().Set("ETag", tag)
	c.looks.note(v.looked(), tag, c.config.Now())
	return tag, v.r.Header.Get("If-None-Match") == tag
}

// visitor of a route, with what is the same for all of them.
func (c *Console) visitor(r route) visitor {
	return func(ctx context.Context, v *visit) (page, error) {
		if c.unchanged(v, r) {
			return page{same: true}, nil
		}
		return r.visit(ctx, v)
	}
}
