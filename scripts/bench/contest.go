package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// contestant takes samples, each in a new process.
type contestant struct {
	name    string
	sampler func(ctx context.Context, sample string, d time.Duration) ([]float64, error)
}

// field lists the contestants: the runtime first, then its peers, unless they are missing.
type field struct {
	contestants []contestant
	missing     error
	leave       func()
}

// sampled holds the samples of a contestant, a row for each round.
type sampled struct {
	name   string
	rounds [][]float64
}

// fight takes samples one after the other, round after round, because a slow machine has to affect all contestants.
func (f field) fight(ctx context.Context, c contest, d time.Duration) ([]sampled, error) {
	results := make([]sampled, len(f.contestants))
	for range peerRounds {
		for i, one := range f.contestants {
			values, err := one.sampler(ctx, c.sample, d)
			if err != nil {
				return nil, fmt.Errorf("sample %s of %s: %w", c.sample, one.name, err)
			}
			results[i].name = one.name
			results[i].rounds = append(results[i].rounds, values)
		}
	}
	return results, nil
}

// arena builds the peers' program and runs it next to this one.
type arena struct{}

// tmpfs is a file system in memory.
const tmpfs = "/dev/shm"

// enter returns the field of a contest. Unavailable modules of the peers are no error.
func (a arena) enter(ctx context.Context, c contest) (field, error) {
	self, err := os.Executable()
	if err != nil {
		return field{}, fmt.Errorf("find this program: %w", err)
	}
	dir, err := os.MkdirTemp("", "roundhouse-peers-")
	if err != nil {
		return field{}, fmt.Errorf("make a folder for the peers: %w", err)
	}
	f := field{leave: func() { _ = os.RemoveAll(dir) }, contestants: []contestant{{"roundhouse, memory store", a.ours(self)}}}
	program := filepath.Join(dir, "peers")
	if f.missing = buildPeers(ctx, program); f.missing != nil {
		return f, nil
	}
	f.contestants = append(f.contestants, a.theirs(program, dir, c)...)
	return f, nil
}

// buildPeers builds the program in the module next to this package.
func buildPeers(ctx context.Context, program string) error {
	mod, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return fmt.Errorf("find the module: %w", err)
	}
	source := filepath.Join(filepath.Dir(strings.TrimSpace(string(mod))), "scripts", "bench", "peers")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, ".")
	build.Dir = source
	build.Env = append(os.Environ(), "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		return fmt.Errorf("the peers could not be built (%w): %s", err, lines[len(lines)-1])
	}
	return nil
}

// ours samples the runtime in a new process of this program.
func (arena) ours(self string) func(context.Context, string, time.Duration) ([]float64, error) {
	return func(ctx context.Context, sample string, d time.Duration) ([]float64, error) {
		return inProcess(ctx, self, "-sample", sample, "-time", d.String())
	}
}

// theirs returns the best forms of the peers.
func (arena) theirs(program, dir string, c contest) []contestant {
	peer := func(name, config, where string) contestant {
		return contestant{name, func(ctx context.Context, sample string, d time.Duration) ([]float64, error) {
			data, err := os.MkdirTemp(where, "roundhouse-peer-")
			if err != nil {
				return nil, err
			}
			values, err := inProcess(ctx, program, "-config", config, "-figure", sample, "-time", d.String(), "-dir", data)
			return values, errors.Join(err, os.RemoveAll(data))
		}}
	}
	var out []contestant
	if c.sample != "replay" { // a database in memory ends with its process, before the replay
		out = append(out, peer("dbos v1.8.0, SQLite in memory, one connection", "dbos-memory", dir))
	}
	out = append(out, peer("dbos v1.8.0, SQLite WAL in a file", "dbos-wal", dir))
	fast := dir
	if info, err := os.Stat(tmpfs); err == nil && info.IsDir() {
		fast = tmpfs
		out = append(out, peer("dbos v1.8.0, SQLite WAL on tmpfs", "dbos-wal", fast))
	}
	if c.durableTask {
		out = append(out, peer("durabletask-go v0.6.0, SQLite in memory", "durabletask-memory", dir),
			peer("durabletask-go v0.6.0, SQLite WAL on tmpfs", "durabletask-wal", fast))
	}
	return out
}

// inProcess runs a program that prints the values of a sample.
func inProcess(ctx context.Context, program string, args ...string) ([]float64, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "GOGC="+strconv.Itoa(gcPercent))
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
		}
		return nil, err
	}
	var values []float64
	if err := json.Unmarshal(out, &values); err != nil {
		return nil, fmt.Errorf("read what %s printed: %w", filepath.Base(program), err)
	}
	return values, nil
}
