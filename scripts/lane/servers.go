package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/vibedata/roundhouse/internal/azurite/azuritetest"
	"github.com/vibedata/roundhouse/internal/daemon"
	"github.com/vibedata/roundhouse/internal/postgres/postgrestest"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// serve starts the servers that tests of the packages share. The returned environment has their addresses. A server
// that this machine lacks is left out: the tests skip, or fail if all tests are required. stop is never nil.
func serve(ctx context.Context, pkgs []pkg) (env []string, stop func(), err error) {
	dir, err := os.MkdirTemp("", "lane")
	if err != nil {
		return nil, func() {}, err
	}
	var wg sync.WaitGroup
	type started struct {
		stop func() error
		err  error
	}
	servers := map[string]func(context.Context, string) (func() error, error){
		"internal/azurite/azuritetest":   azuritetest.Serve,
		"internal/postgres/postgrestest": postgrestest.Serve,
	}
	results := make(chan started, len(servers))
	for path, start := range servers {
		if !slices.ContainsFunc(pkgs, func(p pkg) bool { return p.imports(p.Module.Path + "/" + path) }) {
			continue
		}
		wg.Go(func() {
			stop, err := start(ctx, dir)
			results <- started{stop, err}
		})
	}
	wg.Wait()
	close(results)
	var stops []func() error
	for r := range results {
		if _, missing := errors.AsType[*daemon.MissingError](r.err); r.err != nil && !missing {
			err = errors.Join(err, r.err)
		}
		if r.stop != nil {
			stops = append(stops, r.stop)
		}
	}
	stop = func() {
		for _, s := range stops {
			if err := s(); err != nil {
				fmt.Fprintln(os.Stderr, "lane: stop a server:", err)
			}
		}
		_ = os.RemoveAll(dir)
	}
	return []string{testenv.Servers + "=" + dir}, stop, err
}
