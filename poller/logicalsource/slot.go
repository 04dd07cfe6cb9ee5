package logicalsource

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/poller/sqlsource"
)

// busyPause is the time between two tries of a busy slot: statements that read a slot are short.
const busyPause = 100 * time.Millisecond

// slot is the current state of the slot.
type slot struct {
	// confirmed is its start: earlier commits are gone.
	confirmed uint64
	// flushed is the end of the log.
	flushed uint64
	// held is the size of the log that it keeps, and status the server's status of that.
	held   int64
	status string
}

// slot reads the state of the slot and refuses an unreadable one. missing is the sentinel for a missing one.
func (s *Source) slot(ctx context.Context, missing error) (now slot, err error) {
	var plugin, kind, confirmed, flushed, status sql.NullString
	var here, temporary, recovering sql.NullBool
	var held sql.NullInt64
	err = s.db.QueryRowContext(ctx, `SELECT pg_is_in_recovery(), e.flushed::text, s.plugin::text, s.slot_type, s.database = current_database(), s.temporary,
	s.confirmed_flush_lsn::text, pg_wal_lsn_diff(e.flushed, s.restart_lsn)::bigint, s.wal_status
	FROM (SELECT CASE WHEN pg_is_in_recovery() THEN NULL ELSE pg_current_wal_flush_lsn() END AS flushed) e
	LEFT JOIN pg_replication_slots s ON s.slot_name = $1`, s.config.Slot).
		Scan(&recovering, &flushed, &plugin, &kind, &here, &temporary, &confirmed, &held, &status)
	switch {
	case err != nil:
		return now, err
	case recovering.Bool:
		return now, fmt.Errorf("%w: this is a standby: read from the primary", ErrSetup)
	case !kind.Valid:
		return now, fmt.Errorf("%w: there is no slot %s: make it with SELECT pg_create_logical_replication_slot('%s', 'pgoutput'). If it was there before, changes are lost since then: reset the poller to the beginning, and read the tables anew",
			missing, s.config.Slot, s.config.Slot)
	case kind.String != "logical" || plugin.String != "pgoutput" || !here.Bool || temporary.Bool:
		return now, fmt.Errorf("%w: the slot %s must be a lasting logical one of this database with the plugin pgoutput", ErrSetup, s.config.Slot)
	case status.String == "lost" || !confirmed.Valid:
		return now, fmt.Errorf("%w: the server has invalidated the slot %s (wal_status %s), because it held back more log than max_slot_wal_keep_size allows, say: drop it, make it anew, reset the poller to the beginning, and read the tables anew",
			ErrSlotLost, s.config.Slot, status.String)
	}
	begin, okBegin := poller.ParseLogPosition(confirmed.String)
	end, okEnd := poller.ParseLogPosition(flushed.String)
	if !okBegin || !okEnd {
		return now, fmt.Errorf("%w: the slot is at %s, and the log at %s", ErrMessage, confirmed.String, flushed.String)
	}
	return slot{confirmed: begin.LSN, flushed: end.LSN, held: held.Int64, status: status.String}, nil
}

// advice returns a warning of a coming problem, "" for none.
func (s *Source) advice(now slot) string {
	size := fmt.Sprintf("the slot %s keeps %d MiB of log on the server", s.config.Slot, now.held>>20)
	switch {
	case now.status == "unreserved":
		return size + ", and will lose changes at the server's next checkpoint: let the poller catch up now, or raise max_slot_wal_keep_size"
	case now.held >= s.config.WarnBytes:
		return size + ": let the poller catch up, end transactions that are open for long, or drop the slot if nobody reads it"
	}
	return ""
}

// begin checks that the slot has everything after a position, and makes it forget the changes before that. The position
// is stored: earlier changes are never needed again.
func (s *Source) begin(ctx context.Context, after poller.LogPosition, now slot) error {
	if after == (poller.LogPosition{}) {
		return nil // the beginning is the start of the slot
	}
	if after.LSN > now.flushed {
		return fmt.Errorf("%w: the place %s is behind the end of the server's log, %s: it was restored from a backup, or is another server. Reset the poller, and make the slot anew",
			sqlsource.ErrWentBack, after, poller.LogPosition{LSN: now.flushed})
	}
	if after.LSN < now.confirmed {
		return fmt.Errorf("%w: the place %s is in front of where the slot %s begins, %s: what is between them is gone. Reset the poller to a later place if that is right, or to the beginning, and read the tables anew",
			ErrSlotLost, after, s.config.Slot, poller.LogPosition{LSN: now.confirmed})
	}
	if after.LSN == now.confirmed {
		return nil
	}
	var text string
	err := s.whenFree(ctx, func() error {
		return s.db.QueryRowContext(ctx, "SELECT end_lsn::text FROM pg_replication_slot_advance($1, CAST($2 AS pg_lsn))", s.config.Slot, poller.LogPosition{LSN: after.LSN}.String()).Scan(&text)
	})
	if err != nil {
		return fmt.Errorf("advance the slot to %s: %w", after, err)
	}
	if end, ok := poller.ParseLogPosition(text); !ok || end.LSN > after.LSN {
		return fmt.Errorf("%w: the slot was to go to %s, and went to %s", ErrSlotLost, after, text)
	}
	return nil
}

// whenFree runs a function that needs the slot, and waits while another session has it.
func (s *Source) whenFree(ctx context.Context, do func() error) error {
	timer := time.NewTimer(busyPause)
	defer timer.Stop()
	for {
		err := do()
		if !hasCode(err, "55006") {
			return err
		}
		timer.Reset(busyPause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			return fmt.Errorf("%w: one slot is for one poller: %w (%w)", ErrSlotBusy, err, ctx.Err())
		}
	}
}
