package handler

import (
	"context"
	"errors"
	"fmt"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/tables"
)

// errReadOnly: a write in a read-only program.
var errReadOnly = errors.New("this program only reads here")

// readTables are read-only tables.
type readTables struct{ tables.Store }

// CreateTable refuses.
func (readTables) CreateTable(_ context.Context, table string) error {
	return fmt.Errorf("create table %s: %w", table, errReadOnly)
}

// Apply refuses.
func (readTables) Apply(_ context.Context, table string, _ ...tables.Op) error {
	return fmt.Errorf("write to table %s: %w", table, errReadOnly)
}

// readBlobs are read-only blobs.
type readBlobs struct{ blobs.Store }

// CreateContainer refuses.
func (readBlobs) CreateContainer(_ context.Context, container string) error {
	return fmt.Errorf("create container %s: %w", container, errReadOnly)
}

// Put refuses.
func (readBlobs) Put(_ context.Context, container, name string, _ []byte) error {
	return fmt.Errorf("write blob %s/%s: %w", container, name, errReadOnly)
}

// PutIf refuses.
func (readBlobs) PutIf(_ context.Context, container, name string, _ []byte, _ string) error {
	return fmt.Errorf("write blob %s/%s: %w", container, name, errReadOnly)
}

// Delete refuses.
func (readBlobs) Delete(_ context.Context, container, name string) error {
	return fmt.Errorf("delete blob %s/%s: %w", container, name, errReadOnly)
}

// DeleteVersion refuses.
func (readBlobs) DeleteVersion(_ context.Context, container string, v blobs.Version) error {
	return fmt.Errorf("delete blob %s/%s: %w", container, v.Name, errReadOnly)
}
