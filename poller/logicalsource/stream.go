package logicalsource

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pglogrepl"

	"github.com/vibedata/roundhouse/poller"
)

// The number of messages that are read from the cursor together: as many as fit stepBytes, by the size of previous
// ones.
const (
	firstStep = 16
	mostStep  = 1000
	stepBytes = 1 << 20
)

// stream is the contents of the slot after a position, read message by message from a cursor on the server.
type stream struct {
	source *Source
	tx     *sql.Tx
	after  poller.LogPosition
	// most ends the look at the slot; count is the number of messages so far, and step the number of the next read.
	most, count, step int
	chunk             [][]byte
	ended             bool

	relations map[uint32]*relation
	commit    transaction
	change    uint64
	// held is the last row of the transaction so far: if it stays the last, its position is the transaction's end. ready
	// are the rows to return next.
	held  *poller.Row
	ready []poller.Row
	// last is the position of the last returned row.
	last poller.LogPosition
}

// transaction is the transaction being read.
type transaction struct {
	lsn uint64
	at  time.Time
	xid uint32
}

// resumable reports whether the next rows are those after a position.
func (st *stream) resumable(after poller.LogPosition) bool { return st.last == after }

// exhausted reports whether nothing follows. more reports that the look at the slot has ended before the log.
func (st *stream) exhausted() bool {
	return st.ended && len(st.chunk) == 0 && len(st.ready) == 0 && st.held == nil
}
func (st *stream) more() bool { return !st.exhausted() || st.count >= st.most }

// close ends the transaction, which is read-only.
func (st *stream) close() { _ = st.tx.Rollback() }

// read returns rows, up to limit and, except for the first one, maxBytes of data.
func (st *stream) read(ctx context.Context, limit, maxBytes int) (b poller.Batch, err error) {
	size := 0
	for len(b.Rows) < limit {
		if len(st.ready) == 0 {
			if more, err := st.advance(ctx); err != nil || !more {
				b.More = st.more()
				return b, err
			}
			continue
		}
		row := st.ready[0]
		if size += len(row.Data); size > maxBytes && len(b.Rows) > 0 {
			break
		}
		place, ok := poller.ParseLogPosition(row.Cursor.Value)
		if !ok { // unreachable: the text was written here
			return b, fmt.Errorf("%w: the place %s", ErrMessage, row.Cursor.Value)
		}
		b.Rows, st.ready, st.last = append(b.Rows, row), st.ready[1:], place
	}
	b.More = st.more()
	return b, nil
}

// advance reads one message; false means that none is left.
func (st *stream) advance(ctx context.Context) (bool, error) {
	if len(st.chunk) == 0 && !st.ended {
		if err := st.fill(ctx); err != nil {
			return false, err
		}
	}
	if len(st.chunk) == 0 {
		if st.held != nil {
			return false, fmt.Errorf("%w: the transaction of the commit at %s has no end", ErrMessage, poller.LogPosition{LSN: st.commit.lsn})
		}
		return false, nil
	}
	message, err := parse(st.chunk[0])
	if err != nil {
		return false, err
	}
	st.chunk = st.chunk[1:]
	return true, st.take(ctx, message)
}

// parse reads a message. The library would read beyond the end of a truncated one.
func parse(data []byte) (m pglogrepl.Message, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %d bytes of the type %.1q are cut off", ErrMessage, len(data), data)
		}
	}()
	if len(data) == 0 {
		return nil, fmt.Errorf("%w: it is empty", ErrMessage)
	}
	if m, err = pglogrepl.Parse(data); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMessage, err)
	}
	return m, nil
}

// fill reads messages from the cursor.
func (st *stream) fill(ctx context.Context) (err error) {
	rows, err := st.tx.QueryContext(ctx, fmt.Sprintf("FETCH %d FROM changes", st.step))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	size, n := 0, 0
	for ; rows.Next(); n++ {
		var data []byte
		if err := rows.Scan(&data); err != nil {
			return err
		}
		st.chunk = append(st.chunk, data)
		size += len(data)
	}
	st.count += n
	st.ended = n < st.step
	st.step = min(mostStep, max(1, st.step*stepBytes/max(size, 1)))
	return rows.Err()
}

// take makes rows of a message.
func (st *stream) take(ctx context.Context, message pglogrepl.Message) error {
	switch m := message.(type) {
	case *pglogrepl.BeginMessage:
		st.commit, st.change = transaction{lsn: uint64(m.FinalLSN), at: m.CommitTime, xid: m.Xid}, 0
	case *pglogrepl.CommitMessage:
		st.finish(uint64(m.TransactionEndLSN))
	case *pglogrepl.RelationMessage:
		r, err := st.source.relation(ctx, m)
		st.relations[m.RelationID] = r
		return err
	case *pglogrepl.InsertMessage:
		return st.row(ctx, m.RelationID, opInsert, nil, m.Tuple)
	case *pglogrepl.UpdateMessage:
		return st.row(ctx, m.RelationID, opUpdate, m.OldTuple, m.NewTuple)
	case *pglogrepl.DeleteMessage:
		return st.row(ctx, m.RelationID, opDelete, m.OldTuple, nil)
	case *pglogrepl.TruncateMessage:
		for _, id := range m.RelationIDs {
			if err := st.row(ctx, id, opTruncate, nil, nil); err != nil {
				return err
			}
		}
	case *pglogrepl.TypeMessage, *pglogrepl.OriginMessage: // types are queried, and the origin does not matter
	default:
		return fmt.Errorf("%w: the type %s is not known", ErrMessage, message.Type())
	}
	return nil
}

// row adds a change, unless it is before the position.
func (st *stream) row(ctx context.Context, id uint32, op string, old, tuple *pglogrepl.TupleData) error {
	st.change++
	place := poller.LogPosition{LSN: st.commit.lsn, Change: st.change}
	if place.Compare(st.after) <= 0 {
		return nil
	}
	r := st.relations[id]
	if r == nil {
		return fmt.Errorf("%w: a change of the relation %d, of which nothing was said", ErrMessage, id)
	}
	row, err := st.source.row(ctx, r, Change{Op: op, Table: r.name, CommittedAt: st.commit.at.UTC().Format(time.RFC3339Nano), XID: st.commit.xid}, old, tuple)
	if err != nil {
		return fmt.Errorf("change %s of %s: %w", place, r.name, err)
	}
	row.Cursor = cursorAt(place)
	if st.held != nil {
		st.ready = append(st.ready, *st.held)
	}
	st.held = &row
	return nil
}

// finish gives the last row of a transaction the position after the transaction, so that the slot need not keep it.
func (st *stream) finish(end uint64) {
	if st.held != nil {
		st.held.Cursor = cursorAt(poller.LogPosition{LSN: end})
		st.ready = append(st.ready, *st.held)
	}
	st.held, st.change = nil, 0
}
