package orders

import (
	"context"
	"errors"
	"fmt"

	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/tables"
)

// The tables of the engine. A partition of BookedTable is an order, with a row for each reserved line and one for the payment; a
// partition of ShippedTable is a day, with a row for each order.
const (
	BookedTable  = "ordersBooked"
	ShippedTable = "ordersShipped"
)

// stock is how many pieces of an article an order can have.
const stock = 100

// paymentRow is the row of an order's payment. No article has it: EscapeKey makes no ~.
const paymentRow = "~payment"

// ErrSoldOut: there are not as many pieces as an order wants.
var ErrSoldOut = errors.New("sold out")

// Shop stands for the systems that an engine works with: warehouse, bank, carrier. Its methods are the engine's activities, the
// place for all that is not deterministic. An activity may run again for work that is done (a process died before the result was
// kept, or an attempt began anew), so each of them writes the same row each time.
type Shop struct{ tables tables.Store }

// NewShop makes a shop over tables, which have to exist; those of Definition.Tables do.
func NewShop(t tables.Store) *Shop { return &Shop{t} }

// Reserve puts a line aside.
func (s *Shop) Reserve(ctx context.Context, r Reservation) (string, error) {
	if r.Line.Pieces > stock {
		return "", orchestrator.Permanent(fmt.Errorf("%w: there are %d pieces of %s, the order wants %d", ErrSoldOut, stock, r.Line.Article, r.Line.Pieces))
	}
	err := s.tables.Apply(ctx, BookedTable, tables.Upsert(tables.Entity{Key: r.key(), Properties: map[string]any{"Pieces": int64(r.Line.Pieces)}}))
	return "reserved", err
}

// Release takes a reservation back. It is harmless for one that never was.
func (s *Shop) Release(ctx context.Context, r Reservation) (string, error) {
	return "released", s.remove(ctx, r.key())
}

// Book notes a payment.
func (s *Shop) Book(ctx context.Context, b Booking) (string, error) {
	err := s.tables.Apply(ctx, BookedTable, tables.Upsert(tables.Entity{Key: b.key(),
		Properties: map[string]any{"Reference": b.Payment.Reference, "Cents": int64(b.Payment.Cents)}}))
	return "booked", err
}

// Refund takes a payment back. It is harmless for one that was not booked.
func (s *Shop) Refund(ctx context.Context, b Booking) (string, error) {
	return "refunded", s.remove(ctx, b.key())
}

// Label makes the label of a parcel.
func (s *Shop) Label(_ context.Context, orderID string) (string, error) {
	return "label of " + orderID, nil
}

// HandOff gives a parcel to the carrier.
func (s *Shop) HandOff(ctx context.Context, p Parcel) (string, error) {
	err := s.tables.Apply(ctx, ShippedTable, tables.Upsert(tables.Entity{Key: tables.Key{Partition: p.Day, Row: tables.EscapeKey(p.OrderID)},
		Properties: map[string]any{"Label": p.Label, "Cents": int64(p.Cents)}}))
	return "handed off", err
}

// Total adds up what was shipped on a day.
func (s *Shop) Total(ctx context.Context, day string) (Total, error) {
	sum := Total{Day: day}
	for row, err := range tables.All(ctx, s.tables, ShippedTable, tables.Query{Partition: day}) {
		if err != nil {
			return Total{}, fmt.Errorf("orders of %s: %w", day, err)
		}
		sum.Orders++
		sum.Cents += int(row.Int("Cents"))
	}
	return sum, nil
}

// remove deletes a row, if it is there.
func (s *Shop) remove(ctx context.Context, k tables.Key) error {
	err := s.tables.Apply(ctx, BookedTable, tables.Delete(k, ""))
	if errors.Is(err, tables.ErrNotFound) {
		return nil
	}
	return err
}

func (r Reservation) key() tables.Key {
	return tables.Key{Partition: tables.EscapeKey(r.OrderID), Row: tables.EscapeKey(r.Line.Article)}
}

func (b Booking) key() tables.Key {
	return tables.Key{Partition: tables.EscapeKey(b.OrderID), Row: paymentRow}
}
