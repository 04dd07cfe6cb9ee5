package handler

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestWatchParent(t *testing.T) {
	t.Parallel()
	t.Run("parent dies", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			var ppid atomic.Int64
			ppid.Store(41)
			time.AfterFunc(10*time.Second+time.Millisecond, func() { ppid.Store(1) })
			started := time.Now()
			err := watchParent(t.Context(), 41, func() int { return int(ppid.Load()) })
			if !errors.Is(err, errParentGone) {
				t.Errorf("error %v", err)
			}
			if seen := time.Since(started); seen != 11*time.Second {
				t.Errorf("seen after %v", seen)
			}
		})
	})
	t.Run("stopped", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			if err := watchParent(ctx, 1, func() int { return 1 }); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error %v", err)
			}
		})
	})
}
