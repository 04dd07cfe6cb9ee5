package main

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/console"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

const (
	// consoleTabs is the number of open browser tabs.
	consoleTabs = 10
	// consoleRows is the number of rows of a console page.
	consoleRows = 50
)

// consoleApp is a whole app over storage in memory, with dead letters.
type consoleApp struct{ *countedApp }

// newConsoleApp starts an app that has so many dead letters, all pending.
func newConsoleApp(ctx context.Context, rows int) (consoleApp, error) {
	memory, d := tables.NewMemory(), &countedApp{requestCount: &requestCount{counts: map[string]int{}}, polled: queues.NewMemory(), listens: map[string]string{}}
	count := func(ctx context.Context, call faults.Call, next func(context.Context) error) error {
		d.note(call)
		return next(ctx)
	}
	d.queues = faults.Queues(d.polled, count)
	c := handler.Config{Tables: faults.Tables(memory, count), Queues: d.queues, Blobs: faults.Blobs(blobs.NewMemory(), count), Lookup: consoleSettings, Log: slog.New(slog.DiscardHandler)}
	var err error
	d.handler, err = handler.New(handler.App{Engines: func(*handler.Platform) ([]engine.Definition, error) {
		return []engine.Definition{(&house{}).definition()}, nil
	}}, c)
	if err != nil {
		return consoleApp{}, err
	}
	for name, f := range d.handler.Manifest().Functions {
		if queue := f.Bindings[0].QueueName; queue != "" {
			d.listens[queue] = name
		}
	}
	return consoleApp{d}, errors.Join(d.handler.Start(ctx), fillDeadLetters(ctx, engine.NewDeadLetters(memory, ""), rows))
}

// consoleSettings returns those of a developer's host, where messages are handled when they are delivered.
func consoleSettings(name string) (string, bool) {
	if name == "ROUNDHOUSE_DIRECT" {
		return "0", true
	}
	return countedSettings(name)
}

// fillDeadLetters adds dead letters of some causes, the newest of this minute.
func fillDeadLetters(ctx context.Context, letters *engine.DeadLetters, rows int) error {
	newest := time.Now().UTC().Add(-time.Minute)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(fillConcurrency)
	for i := range rows {
		group.Go(func() error {
			_, err := letters.Add(ctx, engine.DeadLetter{
				Engine: engineName, MessageID: fmt.Sprintf("message-%d", i), CorrelationID: fmt.Sprintf("run-%d", i), InstanceID: fmt.Sprintf("instance-%d", i%100), OriginalQueue: engineQueue,
				OriginalMessage: []byte(`{"input": {"shape": "local", "n": 1}}`), ErrorSignature: fmt.Sprintf("cause-%d", i%letterCauses), ErrorMessage: "it failed",
				LastFailureAtUtc: newest.Add(-time.Duration(i) * time.Second),
			})
			return err
		})
	}
	return group.Wait()
}

// page requests a page, like a browser.
func (a consoleApp) page(ctx context.Context, path string) (*httptest.ResponseRecorder, error) {
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil)
	r.Host = "localhost"
	r.Header.Set("Accept-Encoding", "gzip")
	rec := httptest.NewRecorder()
	a.handler.ServeHTTP(rec, r)
	if rec.Code != http.StatusOK {
		return nil, fmt.Errorf("%s answers %d", path, rec.Code)
	}
	return rec, nil
}

// text returns the content of a page, and the number of bytes sent.
func (a consoleApp) text(ctx context.Context, path string) (text string, sent int, err error) {
	rec, err := a.page(ctx, path)
	if err != nil {
		return "", 0, err
	}
	sent = rec.Body.Len()
	unpacked, err := gzip.NewReader(rec.Body)
	var out []byte
	if err == nil {
		out, err = io.ReadAll(unpacked)
	}
	return string(out), sent, err
}

var loadedAssets = regexp.MustCompile(`(?:href|src)="(` + console.Root + `/assets/[^"]+)"`)

// consoleFirstPage measures the requests of a browser that opens the console for the first time: the page, and all
// its resources.
func consoleFirstPage() scenario {
	metrics := []metric{{"console/first_page/kB", "kB", "goal less than 60: the home page, compressed, with style, script and icon"}}
	return scenario{metrics, func(ctx context.Context, _ time.Duration) ([]float64, error) {
		a, err := newConsoleApp(ctx, fewRows)
		if err != nil {
			return nil, err
		}
		defer a.handler.Close()
		text, all, err := a.text(ctx, console.Root)
		if err != nil {
			return nil, err
		}
		for _, m := range loadedAssets.FindAllStringSubmatch(text, -1) {
			_, sent, err := a.text(ctx, m[1])
			if err != nil {
				return nil, err
			}
			all += sent
		}
		return []float64{float64(all) / 1000}, nil
	}}
}

// consoleLists measures how much longer the list of dead letters takes with many of them.
func consoleLists() scenario {
	metrics := []metric{{fmt.Sprintf("console/list/%d/ratio", manyRows), "ratio", fmt.Sprintf("goal 1.3 or less: the time of a page of %d dead letters of %d, divided by that of %d", consoleRows, manyRows, fewRows)}}
	return scenario{metrics, func(ctx context.Context, d time.Duration) ([]float64, error) {
		var lists []func(context.Context) error
		for _, rows := range []int{fewRows, manyRows} {
			a, err := newConsoleApp(ctx, rows)
			if err != nil {
				return nil, err
			}
			defer a.handler.Close()
			if text, _, err := a.text(ctx, console.Root+"/dead-letters"); err != nil || strings.Count(text, "<tr>") != 1+consoleRows {
				return nil, fmt.Errorf("a page has %d rows, want %d: %w", strings.Count(text, "<tr>")-1, consoleRows, err)
			}
			lists = append(lists, func(ctx context.Context) error {
				_, err := a.page(ctx, console.Root+"/dead-letters")
				return err
			})
		}
		times, err := inTurns(ctx, d, lists...)
		if err != nil {
			return nil, err
		}
		return []float64{times[1] / times[0]}, nil
	}}
}

// consolePolling counts the storage cost of open pages that poll for news: as many tabs of one page, for each polling
// page. Within the browser's cache time, one result serves all tabs; that time is two thirds of the interval. The
// page of an operation shows work that first waits for its messages.
func consolePolling() scenario {
	metrics := []metric{{"console/polling/tx_per_s", "transactions/s",
		fmt.Sprintf("goal less than 1: %d open tabs of the page that costs most, each looking every %v, which is the default, or as seldom as the page says", consoleTabs, console.Interval)}}
	return scenario{metrics, func(ctx context.Context, _ time.Duration) ([]float64, error) {
		a, err := newConsoleApp(ctx, fewRows)
		if err != nil {
			return nil, err
		}
		defer a.handler.Close()
		code, text := a.call(ctx, http.MethodPost, "/api/dlq/retry", []byte(`{"engine":"`+engineName+`","canary":1,"canarySeconds":3600}`))
		var answer struct{ Data struct{ ID string } }
		if err := json.Unmarshal(text, &answer); err != nil || code != http.StatusAccepted {
			return nil, fmt.Errorf("start an operation: %d: %w", code, err)
		}
		if err := a.host(ctx, 1); err != nil {
			return nil, err
		}
		most := 0.0
		for path, every := range map[string]time.Duration{
			"/operations/" + answer.Data.ID: console.PollLater,
			"/dead-letters":                 console.Interval,
			"/orchestrations":               console.Interval,
			"/tasks":                        console.Interval,
			"/outbox":                       console.Interval,
			"/schedules":                    console.Interval,
			"/registry":                     console.Interval,
			"":                              console.Late,
			"/dead-letters/causes":          console.Late,
			"/audit":                        console.Late,
		} {
			cost, err := a.looks(ctx, console.Root+path, every)
			if err != nil {
				return nil, err
			}
			most = max(most, cost)
		}
		return []float64{most}, nil
	}}
}

// looks returns the transactions in a second of tabs that poll a page at an interval: the first reads storage, and
// the others get its result while it is valid.
func (a consoleApp) looks(ctx context.Context, path string, every time.Duration) (float64, error) {
	rec, err := a.page(ctx, path)
	if err != nil {
		return 0, err
	}
	tag := rec.Header().Get("ETag")
	a.begin()
	if code := a.look(ctx, path, tag, 0); code != http.StatusNotModified {
		return 0, fmt.Errorf("%s answers %d to who looks for news, with the tag %q", path, code, tag)
	}
	first, holds := a.sum(""), every*2/3
	for range consoleTabs - 1 {
		if code := a.look(ctx, path, tag, holds); code != http.StatusNotModified {
			return 0, fmt.Errorf("%s answers %d to who looks for news, with the tag %q", path, code, tag)
		}
	}
	if a.sum("") != first {
		return 0, fmt.Errorf("%s: %d tabs cost %d transactions, and one costs %d", path, consoleTabs, a.sum(""), first)
	}
	return float64(first) / holds.Seconds(), nil
}

// look polls a page, and returns the status of the answer.
func (a consoleApp) look(ctx context.Context, path, tag string, holds time.Duration) int {
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil)
	r.Host = "localhost"
	r.Header.Set("If-None-Match", tag)
	r.Header.Set("Cache-Control", fmt.Sprintf("max-age=%d", int(holds.Seconds())))
	rec := httptest.NewRecorder()
	a.handler.ServeHTTP(rec, r)
	return rec.Code
}
