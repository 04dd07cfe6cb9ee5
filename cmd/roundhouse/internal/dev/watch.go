package dev

import (
	"context"
	"io/fs"
	"path/filepath"
	"strings"
	"time"
)

// watchInterval is the interval between two checks of a module's files.
const watchInterval = 500 * time.Millisecond

// watch reports changes of an app's source files. Several changes in a row are one.
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
		if now == last && now != built { // the changes have ended
			built = now
			select {
			case changed <- struct{}{}:
			default: // already reported
			}
		}
		last = now
	}
}

// state identifies a state of files: their number, and the last change.
type state struct {
	files  int
	newest time.Time
}

// look returns the state of the files in a folder.
func look(dir string) (s state) {
	// Unreadable files are ignored: the build will report them.
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

// isSource reports whether a file is a source of an app.
func isSource(name string) bool {
	switch name {
	case "go.mod", "go.sum", "host.json", "local.settings.json":
		return true
	}
	return strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go")
}
