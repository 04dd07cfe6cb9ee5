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

// stock is the most pieces of an article in an order.
const stock = 100

// paymentRow is the row of an order's payment. No article has this row key: EscapeKey makes no ~.
const paymentRow = "~payment"

// ErrSoldOut means that an order wants more pieces than the stock.
var ErrSoldOut = errors.New("sold out")

// Shop represents the systems that an engine works with: warehouse, bank, carrier. Its methods are the engine's
// activities, the place for everything that is not deterministic. An activity may run again after its work is done (a
// process died before the result was stored, or an attempt started over), so each of them writes the same row each
// time.
type Shop struct{ tables tables.Store }

// NewShop returns a shop over tables, which have to exist, like those of Definition.Tables.
func NewShop(t tables.Store) *Shop { return &Shop{t} }

// Reserve reserves a line.
func (s *Shop) Reserve(ctx context.Context, r Reservation) (string, error) {
	if r.Line.Pieces > stock {
		return "", orchestrator.Permanent(fmt.Errorf("%w: there are %d pieces of %s, the order wants %d", ErrSoldOut, stock, r.Line.Article, r.Line.Pieces))
	}
	err := s.tables.Apply(ctx, BookedTable, tables.Upsert(tables.Entity{Key: r.key(), Properties: map[string]any{"Pieces": int64(r.Line.Pieces)}}))
	return "reserved", err
}

// Release releases a reservation. A missing one is no error.
func (s *Shop) Release(ctx context.Context, r Reservation) (string, error) {
	return "released", s.remove(ctx, r.key())
}

// Book records a payment.
func (s *Shop) Book(ctx context.Context, b Booking) (string, error) {
	err := s.tables.Apply(ctx, BookedTable, tables.Upsert(tables.Entity{Key: b.key(),
		Properties: map[string]any{"Reference": b.Payment.Reference, "Cents": int64(b.Payment.Cents)}}))
	return "booked", err
}

// Refund refunds a payment. A missing one is no error.
func (s *Shop) Refund(ctx context.Context, b Booking) (string, error) {
	return "refunded", s.remove(ctx, b.key())
}

// Label returns the label of a parcel.
func (s *Shop) Label(_ context.Context, orderID string) (string, error) {
	return "label of " + orderID, nil
}

// HandOff passes a parcel to the carrier.
func (s *Shop) HandOff(ctx context.Context, p Parcel) (string, error) {
	err := s.tables.Apply(ctx, ShippedTable, tables.Upsert(tables.Entity{Key: tables.Key{Partition: p.Day, Row: tables.EscapeKey(p.OrderID)},
		Properties: map[string]any{"Label": p.Label, "Cents": int64(p.Cents)}}))
	return "handed off", err
}

// Total adds up the shipments of a day.
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

// remove deletes a row, if it exists.
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
