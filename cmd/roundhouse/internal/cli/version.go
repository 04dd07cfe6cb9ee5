package cli

import (
	"context"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// built is the build information of a program.
type built struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"` // uncommitted changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// builtOf reads the linker's build information; info is nil without it.
func builtOf(info *debug.BuildInfo) built {
	b := built{Version: "unreleased", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info == nil {
		return b
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		b.Version = v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// String returns one line: the version, and the revision if the version does not contain it.
func (b built) String() string {
	text := b.Version
	if b.Revision != "" && !strings.Contains(b.Version, b.Revision[:min(12, len(b.Revision))]) {
		text += " " + b.Revision
		if b.Modified {
			text += ", modified"
		}
	}
	return text + " (" + b.Go + ", " + b.Platform + ")"
}

// version returns the build information of this program.
func version() built {
	info, _ := debug.ReadBuildInfo() // nil for none
	return builtOf(info)
}

func (a *app) versionCommand() *cobra.Command {
	return a.command(spec{use: "version", short: "Show the version of this program", run: func(context.Context, []string) error {
		return a.detail(version())
	}})
}
