package codec_test

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/blobs/blobstest"
	"github.com/vibedata/roundhouse/codec"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/queues/queuestest"
	"github.com/vibedata/roundhouse/tables"
	"github.com/vibedata/roundhouse/tables/tablestest"
)

// The stores keep the promises of the plain ones when all data is encrypted.
func TestBlobs(t *testing.T) {
	t.Parallel()
	blobstest.Run(t, func(t *testing.T) blobs.Store {
		return &encryptedBlobs{blobs.NewMemory(), config(t, newVault())}
	})
}

func TestQueues(t *testing.T) {
	t.Parallel()
	queuestest.Run(t, func(t *testing.T) queues.Store {
		return config(t, newVault()).Queues(queues.NewMemory())
	})
}

func TestTables(t *testing.T) {
	t.Parallel()
	tablestest.Run(t, func(t *testing.T) tables.Store {
		return &encryptedTables{tables.NewMemory(), config(t, newVault())}
	})
}

// encryptedBlobs encrypts the containers that it makes.
type encryptedBlobs struct {
	blobs.Store
	config codec.Config
}

func (s *encryptedBlobs) CreateContainer(ctx context.Context, container string) error {
	err := s.Store.CreateContainer(ctx, container)
	if len(s.config.Containers) == 0 && err == nil {
		s.config.Containers = []string{container}
		s.Store = s.config.Blobs(s.Store)
	}
	return err
}

// encryptedTables encrypts the tables that it makes.
type encryptedTables struct {
	tables.Store
	config codec.Config
}

func (s *encryptedTables) CreateTable(ctx context.Context, table string) error {
	err := s.Store.CreateTable(ctx, table)
	if s.config.Clear == nil && err == nil {
		// The columns that the suite compares.
		columns := []string{"Text", "Row", "Bytes", "V", "A", "Name", "Missing"}
		for i := range 12 {
			columns = append(columns, fmt.Sprintf("P%02d", i))
		}
		s.config.Clear = map[string][]string{table: columns}
		s.Store = s.config.Tables(s.Store)
	}
	return err
}

// config encrypts all queues; a test adds the rest.
func config(t *testing.T, v *vault) codec.Config {
	t.Helper()
	envelope := testenv.Must(codec.NewEnvelope(codec.EnvelopeConfig{Keys: v}))(t)
	return codec.Config{Codec: envelope, Queue: func(string) bool { return true }}
}

// vault is a key that counts requests.
type vault struct {
	aead           cipher.AEAD
	wraps, unwraps atomic.Int64
	id             atomic.Pointer[string]
	failure        atomic.Pointer[error]
	wrapped        []byte // replaces the result of Wrap
	padding        int    // bytes before the result of Wrap
}

var errVault = errors.New("the vault does not answer")

func newVault() *vault {
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	block, _ := aes.NewCipher(key)
	v := &vault{}
	v.aead, _ = cipher.NewGCMWithRandomNonce(block)
	v.rename("payloads/1")
	return v
}

func (v *vault) rename(id string) { v.id.Store(&id) }

func (v *vault) fail(err error) { v.failure.Store(&err) }

func (v *vault) Wrap(_ context.Context, key []byte) ([]byte, string, error) {
	v.wraps.Add(1)
	if err := v.failure.Load(); err != nil && *err != nil {
		return nil, "", *err
	}
	if v.wrapped != nil {
		return v.wrapped, *v.id.Load(), nil
	}
	return v.aead.Seal(make([]byte, v.padding), nil, key, nil), *v.id.Load(), nil
}

func (v *vault) Unwrap(_ context.Context, _ string, wrapped []byte) ([]byte, error) {
	v.unwraps.Add(1)
	if err := v.failure.Load(); err != nil && *err != nil {
		return nil, *err
	}
	return v.aead.Open(nil, nil, wrapped[v.padding:], nil)
}

// clock is a clock that a test advances.
type clock struct{ at atomic.Int64 }

func (c *clock) now() time.Time { return time.Unix(0, c.at.Load()) }

func (c *clock) add(d time.Duration) { c.at.Add(int64(d)) }
