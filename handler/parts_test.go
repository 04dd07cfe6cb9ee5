package handler

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/handler/settings"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/catalog"
	"github.com/vibedata/roundhouse/tables"
	"github.com/vibedata/roundhouse/tables/hostlock"
)

// One of two processes collects while it is scraped; when it is no longer scraped, the other does.
func TestOneCollects(t *testing.T) {
	t.Parallel()
	store := tables.NewMemory()
	now := time.Now()
	locks := hostlock.Locks{Tables: store, Now: func() time.Time { return now }}
	testenv.OK(t, locks.CreateTable(t.Context()))
	one := &collector{locks: locks, log: slog.New(slog.DiscardHandler), now: locks.Now}
	other := &collector{locks: locks, log: slog.New(slog.DiscardHandler), now: locks.Now}
	for range 10 {
		if !one.Held(t.Context()) || other.Held(t.Context()) {
			t.Fatal("the first to ask does not collect alone")
		}
		now = now.Add(collectorLease / 3)
	}
	now = now.Add(collectorLease)
	if !other.Held(t.Context()) || one.Held(t.Context()) {
		t.Error("the other does not take over")
	}
}

// For any number of callers, the list is read once for each state.
func TestCensusIsShared(t *testing.T) {
	t.Parallel()
	queries := 0
	store := faults.Tables(tables.NewMemory(), func(ctx context.Context, c faults.Call, next func(context.Context) error) error {
		if c.Operation == "Query" {
			queries++
		}
		return next(ctx)
	})
	list, err := catalog.New(catalog.Config{Tables: store, Runtime: func() *orchestrator.Runtime { return nil }})
	if err == nil {
		err = list.Prepare(t.Context())
	}
	testenv.OK(t, err)
	census := states(list)
	for range 50 {
		if tally, err := stalled(census)(t.Context()); err != nil || tally.Total() != 0 {
			t.Errorf("%+v, %v", tally, err)
		}
		if c, err := census(t.Context()); err != nil || len(c) != 2 {
			t.Errorf("%+v, %v", c, err)
		}
	}
	testenv.Equal(t, "queries", 2, queries)
}

func TestWatchParent(t *testing.T) {
	t.Parallel()
	testenv.Bubble(t, "parent dies", func(t *testing.T) {
		var ppid atomic.Int64
		ppid.Store(41)
		time.AfterFunc(10*time.Second+time.Millisecond, func() { ppid.Store(1) })
		started := time.Now()
		err := watchParent(t.Context(), 41, func() int { return int(ppid.Load()) })
		if !errors.Is(err, errParentGone) {
			t.Errorf("error %v", err)
		}
		testenv.Equal(t, "when it was seen", 11*time.Second, time.Since(started))
	})
	testenv.Bubble(t, "stopped", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := watchParent(ctx, 1, func() int { return 1 }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
	})
}

// An unused body has been read when its answer is sent, up to the host's limit; a longer one is answered, too.
func TestBodiesAreReadBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	router, err := newRouter(program{API: func(e *echo.Echo) error {
		e.POST("/api/refuse", func(c echo.Context) error { return c.NoContent(http.StatusRequestEntityTooLarge) })
		return nil
	}}, settings.Settings{}, slog.New(slog.DiscardHandler))
	testenv.OK(t, err)
	srv, err := listen(settings.Settings{}, router, slog.New(slog.DiscardHandler))
	testenv.OK(t, err)
	served := make(chan struct{})
	go func() { defer close(served); _ = srv.serve() }()
	defer func() { srv.shutdown(0); <-served }()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, size := range []int{1, 1 << 20, 64 << 20} {
		body := &countingReader{left: size}
		req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://"+srv.listener.Addr().String()+"/api/refuse", body)
		testenv.OK(t, err)
		req.ContentLength = int64(size)
		answer, err := client.Do(req)
		testenv.OK(t, err)
		answer.Body.Close()
		if answer.StatusCode != http.StatusRequestEntityTooLarge || body.left != 0 {
			t.Errorf("%d bytes: %d, %d bytes were not asked for", size, answer.StatusCode, body.left)
		}
	}
}

// countingReader gives zeros.
type countingReader struct{ left int }

func (r *countingReader) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	n := copy(p, bytes.Repeat([]byte{0}, min(len(p), r.left)))
	r.left -= n
	return n, nil
}

// The account is known by its name, or by an address that has it.
func TestAccountName(t *testing.T) {
	t.Parallel()
	for want, accounts := range map[string][]azure.Account{
		"acct1": {{Name: "acct1"}, {TableEndpoint: "https://acct1.table.core.windows.net"}, {TableEndpoint: "https://acct1.table.core.chinacloudapi.cn"}},
		"":      {{}, {TableEndpoint: "https://tables.example.org"}, {TableEndpoint: "http://127.0.0.1:10002/a"}},
	} {
		for _, a := range accounts {
			testenv.Equal(t, a.TableEndpoint, want, accountName(a))
		}
	}
}
