package tls

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/vibedata/roundhouse/tables"
)

// orderRow is the row of OrdersTable with a certificate's latest order. It is kept after the certificate was issued;
// it is for one signing request, so the next renewal ignores it.
const orderRow = "order"

// Properties of a row of OrdersTable.
const (
	propOrder   = "Order"
	propRequest = "RequestHash"
	propJob     = "JobId"
	propMade    = "MadeAtUtc"
)

// order returns the address of the order for a signing request, and creates an order if none exists. Concurrent
// callers get the same one.
func (s *Steps) order(ctx context.Context, in RenewInput, request, replaces []byte) (string, error) {
	name := CertificateName(in.Domains)
	sum := sha256.Sum256(request)
	hash := hex.EncodeToString(sum[:])
	row, err := s.config.Tables.Get(ctx, OrdersTable, orderKey(name))
	if err != nil && !errors.Is(err, tables.ErrNotFound) {
		return "", fmt.Errorf("look for an order of %s: %w", name, err)
	}
	if order, _ := row.Properties[propOrder].(string); err == nil && row.Properties[propRequest] == hash && order != "" {
		return order, nil
	}
	order, err := s.config.Authority.Order(ctx, in.Domains, replaces)
	if err != nil {
		return "", err
	}
	made := tables.Entity{Key: orderKey(name), ETag: row.ETag, Properties: map[string]any{
		propOrder: order, propRequest: hash, propJob: in.JobID, propMade: s.config.Now().UTC()}}
	op := tables.Insert(made)
	if row.ETag != "" {
		op = tables.Replace(made)
	}
	if err := s.config.Tables.Apply(ctx, OrdersTable, op); err != nil {
		return "", fmt.Errorf("record the order of %s: %w", name, err)
	}
	return order, nil
}

// forgetOrder makes the next round create another order, unless another process did so already.
func (s *Steps) forgetOrder(ctx context.Context, name, order string) error {
	row, err := s.config.Tables.Get(ctx, OrdersTable, orderKey(name))
	if err == nil && row.Properties[propOrder] == order {
		err = s.config.Tables.Apply(ctx, OrdersTable, tables.Delete(row.Key, row.ETag))
	}
	if err == nil || errors.Is(err, tables.ErrNotFound) || errors.Is(err, tables.ErrPrecondition) {
		return nil
	}
	return fmt.Errorf("forget the order of %s: %w", name, err)
}

func orderKey(name string) tables.Key { return tables.Key{Partition: name, Row: orderRow} }
