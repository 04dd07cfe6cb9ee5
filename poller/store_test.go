package poller_test

import (
	"errors"
	"testing"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/internal/azurite/azuritetest"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/poller/pollertest"
	"github.com/vibedata/roundhouse/tables"
)

var storage azuritetest.Shared

func TestMain(m *testing.M) { storage.Main(m) }

func TestBlobStore(t *testing.T) {
	t.Parallel()
	pollertest.RunStore(t, func(*testing.T) poller.Store { return poller.BlobStore{Blobs: blobs.NewMemory()} })
}

func TestTableStore(t *testing.T) {
	t.Parallel()
	pollertest.RunStore(t, func(*testing.T) poller.Store { return poller.TableStore{Tables: tables.NewMemory()} })
}

func TestAzureBlobStore(t *testing.T) {
	t.Parallel()
	store := testenv.Must(azure.NewBlobs(storage.Account(t)))(t)
	pollertest.RunStore(t, func(*testing.T) poller.Store {
		return poller.BlobStore{Blobs: store, Container: azuritetest.Name("c")}
	})
}

func TestAzureTableStore(t *testing.T) {
	t.Parallel()
	store := testenv.Must(azure.NewTables(storage.Account(t)))(t)
	pollertest.RunStore(t, func(*testing.T) poller.Store {
		return poller.TableStore{Tables: store, Table: azuritetest.Name("t")}
	})
}

// A poller runs on the real stores: two processes share the rows, and each sees the other's commits.
func TestRunsOnAzurite(t *testing.T) {
	t.Parallel()
	b, blobsErr := azure.NewBlobs(storage.Account(t))
	s, tablesErr := azure.NewTables(storage.Account(t))
	testenv.OK(t, errors.Join(blobsErr, tablesErr))
	for what, store := range map[string]poller.Store{
		"blob":  poller.BlobStore{Blobs: b, Container: azuritetest.Name("c")},
		"table": poller.TableStore{Tables: s, Table: azuritetest.Name("t")},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			testenv.OK(t, store.Create(t.Context()))
			w := newWorld(t)
			share := func(c *poller.RunnerConfig) { c.Store = store; c.Options.MaxBatch = 100 }
			first, second := w.process(nil, share), w.process(nil, share)
			for range 3 {
				w.source.Append(150)
				for _, r := range []*poller.Runner{first, second} {
					if result := w.tick(r); result.Skipped != nil || !result.Drained {
						t.Errorf("%+v", result)
					}
				}
			}
			v, err := poller.Operator{Store: store}.Show(t.Context(), name)
			if err != nil || v.Document.Cursor().Value != "450" || v.Document.Lease.Token != 3 || v.Live {
				t.Errorf("%s, %v", v.Text, err)
			}
			testenv.Equal(t, "", numbers(1, 450), w.delivered)
		})
	}
}
