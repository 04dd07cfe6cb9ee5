package module

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// Processes that stage into one folder at the same time do not disturb each other, and the folder is always complete.
func TestReplaceAtOnce(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	dist := filepath.Join(parent, "dist")
	var staging sync.WaitGroup
	for n := range 8 {
		staging.Go(func() {
			for i := range 50 {
				fresh := filepath.Join(parent, fmt.Sprintf("fresh-%d-%d", n, i))
				err := os.Mkdir(fresh, 0o755)
				for _, name := range []string{"handler", "host.json", "one", "two"} {
					err = errors.Join(err, os.WriteFile(filepath.Join(fresh, name), nil, 0o600))
				}
				if err = errors.Join(err, replace(dist, fresh, "handler")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	staging.Wait()
	if entries, err := os.ReadDir(dist); err != nil || len(entries) != 4 {
		t.Errorf("%v, %v", entries, err)
	}
	if entries, err := os.ReadDir(parent); err != nil || len(entries) != 1 {
		t.Errorf("left beside it: %v, %v", entries, err)
	}
}
