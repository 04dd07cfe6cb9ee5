package dev

import (
	"context"
	"io/fs"
	"path/filepath"
	"strings"
	"time"
)

// watchInterval is between two looks at the files of a module.
const watchInterval = 500 * time.Millisecond

// watch says when files changed that an app is built of. Several changes in a row are one.
func watch(ctx context.Context, dir string, changed chan<- struct{}) {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	built := look(dir)
	for last := built; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := look(dir)
		if now == last && now != built { // it has come to rest
			built = now
			select {
			case changed <- struct{}{}:
			default: // it has been said already
			}
		}
		last = now
	}
}

// state is what tells one state of files from another: how many there are, and when the last was changed.
type state struct {
	files  int
	newest time.Time
}

// look is the state of the files in a folder.
func look(dir string) (s state) {
	// What cannot be read is as if it were not there: the build will say what is wrong with it.
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		name := ""
		if entry != nil {
			name = entry.Name()
		}
		switch {
		case err != nil:
			return nil
		case entry.IsDir() && path != dir && (strings.HasPrefix(name, ".") || name == "dist" || name == "node_modules" || name == "testdata"):
			return filepath.SkipDir
		case entry.IsDir() || !isSource(name):
			return nil
		}
		if info, err := entry.Info(); err == nil {
			s.files++
			if info.ModTime().After(s.newest) {
				s.newest = info.ModTime()
			}
		}
		return nil
	})
	return s
}

// isSource says whether an app is built of a file.
func isSource(name string) bool {
	switch name {
	case "go.mod", "go.sum", "host.json", "local.settings.json":
		return true
	}
	return strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go")
}
