package logicalsource

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/poller/sqlsource"
)

// window is the number of messages that end a look at the slot, which continues to the end of the last transaction.
const window = 10_000

// Source reads one slot. It implements poller.Source and, like that, is used by one goroutine at a time.
type Source struct {
	config  Config
	db      *sql.DB
	secrets []string
	// stream is open between two fetches when more can be read, otherwise nil.
	stream *stream
	types  map[uint32]columnType
	// window is the constant of that name, except in tests.
	window int
}

var _ poller.Source = (*Source)(nil)

// Open returns a source. It does not connect: an unreachable database is reported by Check and Fetch, as
// sqlsource.ErrConnection.
func Open(c Config) (*Source, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	if c.WarnBytes == 0 {
		c.WarnBytes = defaultBehind
	}
	s := &Source{config: c, types: map[uint32]columnType{}, window: window}
	var err error
	if s.db, s.secrets, err = sqlsource.PostgresDB(c.DSN, c.Timeout); err != nil {
		return nil, fmt.Errorf("source %s: %w", c.object(), err)
	}
	return s, nil
}

// Definition returns the definition of the source.
func (s *Source) Definition() poller.Definition { return s.config.Definition() }

// DatabaseID returns the id of the database, "" when the database does not show it.
func (s *Source) DatabaseID(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	id, err := sqlsource.PostgresDatabaseID(ctx, s.db)
	return id, s.wrong("identify the database of", err)
}

var _ poller.Identifier = (*Source)(nil)

// Close closes the connections.
func (s *Source) Close() error {
	s.endStream()
	return s.wrong("close", s.db.Close())
}

// End returns the end of the log: later commits are after it.
func (s *Source) End(ctx context.Context) (poller.Cursor, error) {
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	now, err := s.slot(ctx, ErrSetup)
	if err != nil {
		return poller.Cursor{}, s.wrong("find the end of", err)
	}
	return cursorAt(poller.LogPosition{LSN: now.flushed}), nil
}

// cursorAt returns a position as a cursor.
func cursorAt(p poller.LogPosition) poller.Cursor {
	return poller.Cursor{Kind: "lsn", Value: p.String()}
}

// Fetch returns the rows after a position, and makes the slot forget the changes before it.
func (s *Source) Fetch(ctx context.Context, after poller.Cursor, limit, maxBytes int) (poller.Batch, error) {
	b, err := s.fetch(ctx, after, limit, maxBytes)
	if err != nil {
		s.endStream()
		return poller.Batch{}, s.wrong("fetch from", err)
	}
	return b, nil
}

func (s *Source) fetch(ctx context.Context, after poller.Cursor, limit, maxBytes int) (b poller.Batch, err error) {
	var place poller.LogPosition
	if !after.IsZero() {
		var ok bool
		if place, ok = poller.ParseLogPosition(after.Value); !ok || after.Kind != "lsn" {
			return b, fmt.Errorf("%w: the place %s of the kind %.32q is none in a log: reset the poller to one such as 16/B374D848", sqlsource.ErrColumnType, after, after.Kind)
		}
	}
	if s.stream != nil && s.stream.resumable(place) {
		b, err = s.stream.read(ctx, limit, maxBytes)
		if err == nil && len(b.Rows) > 0 {
			s.endIfDone()
			return b, nil
		}
		// The server ends a cursor that was open for too long; its contents can be read again.
	}
	s.endStream()
	opening, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	missing := ErrSetup
	if !after.IsZero() {
		missing = ErrSlotLost
	}
	now, err := s.slot(opening, missing)
	if err != nil {
		return b, err
	}
	if err := s.begin(opening, place, now); err != nil {
		return b, err
	}
	for most := s.window; ; most *= 2 {
		if s.stream, err = s.open(opening, place, most); err != nil {
			return b, err
		}
		if b, err = s.stream.read(ctx, limit, maxBytes); err != nil {
			return b, err
		}
		if len(b.Rows) > 0 || !s.stream.more() {
			break
		}
		s.endStream() // the stream had only rows before the position, or of unpublished tables
	}
	if len(b.Rows) == 0 && now.flushed > place.LSN {
		b.Through = cursorAt(poller.LogPosition{LSN: now.flushed})
	}
	b.Advice, b.Retained = s.advice(now), now.held
	s.endIfDone()
	return b, nil
}

// endIfDone closes an exhausted stream.
func (s *Source) endIfDone() {
	if s.stream != nil && s.stream.exhausted() {
		s.endStream()
	}
}

// endStream closes the stream, if any.
func (s *Source) endStream() {
	if s.stream != nil {
		s.stream.close()
		s.stream = nil
	}
}

// open starts to read after a position.
func (s *Source) open(ctx context.Context, after poller.LogPosition, most int) (*stream, error) {
	// The transaction outlives this call, and the timeouts of the session end it if no fetch continues.
	tx, err := s.db.BeginTx(context.WithoutCancel(ctx), nil)
	if err != nil {
		return nil, err
	}
	st := &stream{source: s, tx: tx, after: after, most: most, step: firstStep, relations: map[uint32]*relation{}}
	names := ""
	for i, p := range s.config.Publications {
		if i > 0 {
			names += ","
		}
		names += identifier(p)
	}
	declare := fmt.Sprintf("DECLARE changes NO SCROLL CURSOR FOR SELECT data FROM pg_logical_slot_peek_binary_changes(%s, NULL, %d, 'proto_version', '1', 'publication_names', %s)",
		literal(s.config.Slot), most, literal(names))
	for _, statement := range []string{
		// The settings of the decoding session determine the form of values.
		"SET LOCAL bytea_output = hex", "SET LOCAL extra_float_digits = 1", "SET LOCAL IntervalStyle = postgres"} {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			st.close()
			return nil, err
		}
	}
	// The slot is read by the first fetch from the cursor, and is free after that.
	err = s.whenFree(ctx, func() error {
		for _, statement := range []string{"SAVEPOINT reading", declare} {
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
		err := st.fill(ctx)
		if err != nil && hasCode(err, "55006") {
			if _, undo := tx.ExecContext(ctx, "ROLLBACK TO SAVEPOINT reading"); undo != nil {
				return undo
			}
		}
		return err
	})
	if err != nil {
		st.close()
		if hasCode(err, "42704") {
			err = fmt.Errorf("%w: a publication was made after the slot, which decodes as of the time of each change: drop the slot and make it anew (%w)", ErrSetup, err)
		}
		return nil, err
	}
	return st, nil
}
