package queueprobe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler/trigger"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

const (
	// quiet is the time without a message before a probe is sent.
	quiet = 30 * time.Minute
	// rest is the interval at which a process records that messages arrive.
	rest = 5 * time.Minute
	// deafAfter is the number of checks that have to find a probe missing.
	deafAfter = 2
	// resend is the number of checks between two probes: another is sent at the first, and then every hour.
	resend = 12
	// silentAfter is the maximum age of the last check. An idle one leaves no trace for half an hour.
	silentAfter = quiet + 3*lookEvery
	// lookEvery is the minimum interval between two checks that count: the interval of the timer.
	lookEvery = 5 * time.Minute
	// recordTimeout bounds the record of a message's arrival, before which the message is not handled.
	recordTimeout = 5 * time.Second
)

const (
	partition = "queue-probe"
	sentRow   = "sent"
	heardRow  = "heard"

	columnSent    = "SentAtUtc"
	columnLooked  = "LookedAtUtc"
	columnMissing = "Missing"
	columnHeard   = "HeardAtUtc"
)

// Config configures a probe. All but Now are required.
type Config struct {
	Tables tables.Store
	// Table is the table of the probe's rows.
	Table  string
	Queues queues.Store
	// Queue is the probed queue.
	Queue string
	Log   *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Probe probes one queue. It is safe for concurrent use.
type Probe struct {
	config Config
	now    func() time.Time

	mu       sync.Mutex
	recorded time.Time // when this process last recorded an arrival
}

// New makes a probe. It sends no request.
func New(c Config) (*Probe, error) {
	if c.Tables == nil || c.Queues == nil || c.Table == "" || c.Queue == "" || c.Log == nil {
		return nil, errors.New("probe of a queue: tables and a table, queues and a queue, and a log are required")
	}
	p := &Probe{config: c, now: c.Now}
	if p.now == nil {
		p.now = time.Now
	}
	return p, nil
}

// message is the content of a probe.
type message struct {
	SentAt time.Time `json:"roundhouseQueueProbe"`
}

// mark is the prefix of a probe: other messages need not be decoded.
const mark = `{"roundhouseQueueProbe":`

// probed reports whether a delivery is a probe.
func probed(d engine.Delivery) bool {
	body := engine.Original(d)
	var m message
	return bytes.HasPrefix(body, []byte(mark)) && json.Unmarshal(body, &m) == nil && !m.SentAt.IsZero()
}

// Listen makes a handler of the queue record the arrival of messages, and drop probes.
func (p *Probe) Listen(next trigger.QueueHandler) trigger.QueueHandler {
	return func(ctx context.Context, d engine.Delivery) error {
		is := probed(d)
		p.heard(ctx, is)
		if is {
			return nil
		}
		return next(ctx, d)
	}
}

// Poison drops probes from the messages that the host has abandoned.
func (p *Probe) Poison(next trigger.QueueHandler) trigger.QueueHandler {
	return func(ctx context.Context, d engine.Delivery) error {
		if probed(d) {
			return nil
		}
		return next(ctx, d)
	}
}

// heard records an arrival, unless this process did so recently. A failed record is repeated with the next message,
// or the next probe.
func (p *Probe) heard(ctx context.Context, always bool) {
	now := p.now().UTC()
	if !p.due(now, always) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	if err := p.write(ctx, heardRow, map[string]any{columnHeard: now}); err != nil {
		p.config.Log.WarnContext(ctx, "it is not recorded that messages come", "queue", p.config.Queue, "error", err.Error())
	}
}

func (p *Probe) due(now time.Time, always bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !always && now.Sub(p.recorded) < rest {
		return false
	}
	p.recorded = now
	return true
}

// Look does the check of the timer, every five minutes, in one process at a time.
func (p *Probe) Look(ctx context.Context) error {
	s, err := p.State(ctx)
	if err != nil {
		return err
	}
	now := p.now().UTC()
	switch {
	case s.outstanding() && now.Sub(s.LookedAt) < lookEvery-skew: // an operator has run the function manually
		return nil
	case s.outstanding():
		s.Missing++
		if err := p.record(ctx, s.SentAt, s.Missing, now); err != nil || s.Missing%resend != 1 {
			return err
		}
		return p.send(ctx, now)
	case now.Sub(s.HeardAt) >= quiet:
		// The record comes first: the probe may arrive before the call returns.
		if err := p.record(ctx, now, 0, now); err != nil {
			return err
		}
		return p.send(ctx, now)
	default:
		return nil
	}
}

func (p *Probe) record(ctx context.Context, sent time.Time, missing int, looked time.Time) error {
	return p.write(ctx, sentRow, map[string]any{columnSent: sent, columnMissing: int32(missing), columnLooked: looked})
}

func (p *Probe) write(ctx context.Context, row string, properties map[string]any) error {
	e := tables.Entity{Key: tables.Key{Partition: partition, Row: row}, Properties: properties}
	if err := p.config.Tables.Apply(ctx, p.config.Table, tables.Upsert(e)); err != nil {
		return fmt.Errorf("record the probe of %s: %w", p.config.Queue, err)
	}
	return nil
}

func (p *Probe) send(ctx context.Context, now time.Time) error {
	body, err := json.Marshal(message{now})
	if err != nil {
		return fmt.Errorf("probe %s: %w", p.config.Queue, err) // unreachable: times of this century are valid JSON
	}
	if _, err := p.config.Queues.Send(ctx, p.config.Queue, body, 0); err != nil {
		return fmt.Errorf("probe %s: %w", p.config.Queue, err)
	}
	return nil
}

// State reads the state of the queue.
func (p *Probe) State(ctx context.Context) (State, error) {
	page, err := p.config.Tables.Query(ctx, p.config.Table, tables.Query{Partition: partition})
	if err != nil {
		return State{}, fmt.Errorf("read the probe of %s: %w", p.config.Queue, err)
	}
	s := State{Queue: p.config.Queue}
	for _, e := range page.Entities {
		switch e.Row {
		case sentRow:
			missing, _ := e.Properties[columnMissing].(int32)
			s.SentAt, s.LookedAt, s.Missing = e.Time(columnSent), e.Time(columnLooked), int(missing)
		case heardRow:
			s.HeardAt = e.Time(columnHeard)
		}
	}
	return s, nil
}
