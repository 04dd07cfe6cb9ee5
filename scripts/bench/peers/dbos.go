package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
	_ "github.com/dbos-inc/dbos-transact-golang/dbos/driver/sqlite"
)

// dbosLibrary runs workflows whose steps are checkpointed. A step runs in the process of its workflow, without a queue.
type dbosLibrary struct {
	config  dbos.Config
	ctx     dbos.Context
	started atomic.Int64
	reached chan time.Time // when the last step of a cut-off workflow began
}

// newDBOS keeps the database in a file, in WAL mode, as the library opens it.
func newDBOS(ctx context.Context, file string) (*dbosLibrary, error) {
	return launchDBOS(ctx, dbos.Config{DatabaseURL: "sqlite:" + file})
}

// newDBOSInMemory keeps the database in memory, with the one connection that such a database has.
func newDBOSInMemory(ctx context.Context) (*dbosLibrary, error) {
	db, err := sql.Open("sqlite", ":memory:?_txlock=immediate&_pragma=foreign_keys(ON)&_pragma=synchronous(NORMAL)")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	db.SetMaxIdleConns(1)
	db.SetConnMaxLifetime(0)
	return launchDBOS(ctx, dbos.Config{SQLiteSystemDB: db})
}

func launchDBOS(ctx context.Context, config dbos.Config) (*dbosLibrary, error) {
	config.AppName = "bench"
	config.ApplicationVersion = "1"
	config.Logger = slog.New(slog.DiscardHandler)
	l := &dbosLibrary{config: config, reached: make(chan time.Time, 1)}
	if err := l.open(ctx); err != nil {
		return nil, err
	}
	return l, dbos.Launch(l.ctx)
}

// open opens a context of the library that knows the workflows and is not launched.
func (l *dbosLibrary) open(ctx context.Context) error {
	var err error
	if l.ctx, err = dbos.NewContext(ctx, l.config); err != nil {
		return err
	}
	dbos.RegisterWorkflow(l.ctx, dbosSequence, dbos.WithWorkflowName("sequence"))
	dbos.RegisterWorkflow(l.ctx, dbosFanOut, dbos.WithWorkflowName("fanout"))
	dbos.RegisterWorkflow(l.ctx, l.cutOff, dbos.WithWorkflowName("cutoff"))
	return nil
}

func (l *dbosLibrary) run(_ context.Context, shape string, n int) error {
	workflow := dbosSequence
	if shape == "fanout" {
		workflow = dbosFanOut
	}
	id := shape + "-" + strconv.FormatInt(l.started.Add(1), 10)
	handle, err := dbos.RunWorkflow(l.ctx, workflow, n, dbos.WithWorkflowID(id))
	if err != nil {
		return err
	}
	sum, err := handle.GetResult()
	if err == nil && sum != n {
		err = fmt.Errorf("workflow %s gave %d", id, sum)
	}
	return err
}

func dbosSequence(ctx dbos.Context, n int) (int, error) {
	sum := 0
	for range n {
		next, err := dbos.RunAsStep(ctx, func(context.Context) (int, error) { return sum + 1, nil })
		if err != nil {
			return 0, err
		}
		sum = next
	}
	return sum, nil
}

func dbosFanOut(ctx dbos.Context, n int) (int, error) {
	steps := make([]<-chan dbos.StepOutcome[int], n)
	for i := range steps {
		var err error
		if steps[i], err = dbos.Go(ctx, func(context.Context) (int, error) { return 1, nil }); err != nil {
			return 0, err
		}
	}
	sum := 0
	for _, step := range steps {
		outcome := <-step
		if outcome.Err != nil {
			return 0, outcome.Err
		}
		sum += outcome.Result
	}
	return sum, nil
}

// cutOff calls n steps; the last of them never ends.
func (l *dbosLibrary) cutOff(ctx dbos.Context, n int) (int, error) {
	if _, err := dbosSequence(ctx, n-1); err != nil {
		return 0, err
	}
	return dbos.RunAsStep(ctx, func(context.Context) (int, error) {
		l.reached <- time.Now()
		select {}
	}, dbos.WithStepName("last"))
}

// replay resumes the workflow in one library after the other, as a new process does at its launch.
func (l *dbosLibrary) replay(ctx context.Context, activities int, d time.Duration) ([]float64, error) {
	if _, err := dbos.RunWorkflow(l.ctx, l.cutOff, activities, dbos.WithWorkflowID("cut-off")); err != nil {
		return nil, err
	}
	<-l.reached
	runtime.GC() // earlier garbage must not count for the replays
	var us []float64
	for began := time.Now(); len(us) == 0 || time.Since(began) < d; {
		_ = dbos.Shutdown(l.ctx, time.Millisecond) // it reports that the last step continues, as always
		if err := l.open(ctx); err != nil {
			return nil, err
		}
		launched := time.Now()
		if err := dbos.Launch(l.ctx); err != nil {
			return nil, err
		}
		select {
		case at := <-l.reached:
			us = append(us, micros(at.Sub(launched)))
		case <-time.After(time.Minute):
			return nil, errors.New("the workflow was not taken up at the launch")
		}
	}
	return us, nil
}
