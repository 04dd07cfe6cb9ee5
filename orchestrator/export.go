package orchestrator

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"
)

// Export returns the history of an orchestration as JSON, for Replay and OpenHistory: all executions with stored
// rounds, with inputs and results.
func (r *Runtime) Export(ctx context.Context, id string) ([]byte, error) {
	return r.export(ctx, id, func(one round) round { return one })
}

// export exports the rounds, each converted by shown.
func (r *Runtime) export(ctx context.Context, id string, shown func(round) round) ([]byte, error) {
	all, err := r.loadKnown(ctx, id)
	if err != nil {
		return nil, err
	}
	out := exported{Format: historyFormat, Version: historyVersion, ID: id}
	for _, g := range all {
		if started, ok := g.start(); ok {
			out.CorrelationID = started.start().CorrelationID
		}
		if !g.complete() {
			continue
		}
		if g.old {
			if err := r.journal.fetchRounds(ctx, id, g.rounds); err != nil {
				return nil, fmt.Errorf("export of orchestration %s: %w", id, err)
			}
		}
		rounds := make([]round, len(g.rounds))
		for i, one := range g.rounds {
			rounds[i] = shown(one)
		}
		out.Executions = append(out.Executions, exportedRounds{g.number, rounds})
	}
	text, err := marshal(out)
	if err != nil {
		return nil, err
	}
	var indented bytes.Buffer
	err = json.Indent(&indented, text, "", "  ")
	return indented.Bytes(), err
}

// CheckReplay runs the code of this process over the last execution of an orchestration, as a takeover does. It
// returns the error with which the orchestration would stall: a *DeterminismError, or that its orchestrator is not
// registered in the version with which it began. It changes nothing and runs no activity. Use it to check new code
// against running orchestrations before a deployment.
func (r *Runtime) CheckReplay(ctx context.Context, id string) error {
	all, err := r.loadKnown(ctx, id)
	if err != nil {
		return err
	}
	last := all[len(all)-1]
	started, ok := last.start()
	if !ok || !last.complete() {
		return fmt.Errorf("replay of orchestration %s: its rounds are not all there: %w", id, ErrCorrupt)
	}
	o, err := r.pinned(started)
	if err != nil {
		return fmt.Errorf("replay of orchestration %s: %w", id, err)
	}
	if last.old {
		if err := r.journal.fetchRounds(ctx, id, last.rounds); err != nil {
			return fmt.Errorf("replay of orchestration %s: %w", id, err)
		}
	}
	return replayOnly(o, id, started, exportedRounds{last.number, last.rounds})
}

// Replay runs the orchestrator over an exported history and checks that it decides as recorded. A test that replays
// past histories shows whether code may be deployed while orchestrations are running. Replay runs no activity and uses
// no storage. The first difference is a *DeterminismError.
func Replay(o AnyOrchestrator, history []byte) error {
	var h exported
	var compact bytes.Buffer // inputs are compared byte for byte
	err := json.Compact(&compact, history)
	if err == nil {
		err = json.Unmarshal(compact.Bytes(), &h)
	}
	if err != nil {
		return corruptHistory(err)
	}
	if err := checkFormat(h.Format, h.Version); err != nil {
		return err
	}
	for _, e := range h.Executions {
		started, ok := storedExecution{rounds: e.Rounds}.start()
		if !ok {
			return fmt.Errorf("exported history of %s: execution %d does not begin with a start: %w", h.ID, e.Execution, ErrCorrupt)
		}
		details := started.start()
		details.CorrelationID = h.CorrelationID
		started.Start = &details
		if err := replayOnly(o, h.ID, started, e); err != nil {
			return err
		}
	}
	return nil
}

// replayOnly replays an execution that began with started, without a process or storage.
func replayOnly(o AnyOrchestrator, id string, started event, e exportedRounds) error {
	x := &execution{id: id, number: e.Execution, base: max(started.start().Base, 1), correlationID: started.start().CorrelationID,
		orchestrator: o, log: slog.New(slog.DiscardHandler), now: time.Now, publishes: true, signals: true}
	return x.replayAll(e.Rounds)
}

func (x *execution) replayAll(rounds []round) error {
	defer x.close()
	for i, r := range rounds {
		if err := r.check(); err != nil {
			return fmt.Errorf("execution %d, round %d of orchestration %s: %w", x.number, i+1, x.id, err)
		}
	}
	for i := 0; i < len(rounds); {
		turn, n := mergeTurn(rounds[i:])
		if err := x.replay(i+1, turn); err != nil {
			return err
		}
		i += n
	}
	return nil
}
