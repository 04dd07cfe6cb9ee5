package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

func TestBuilt(t *testing.T) {
	t.Parallel()
	const revision = "0123456789abcdef0123456789abcdef01234567"
	in := func(version string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Version: version}, Settings: settings}
	}
	from, modified := debug.BuildSetting{Key: "vcs.revision", Value: revision}, debug.BuildSetting{Key: "vcs.modified", Value: "true"}
	end := " (" + runtime.Version() + ", " + runtime.GOOS + "/" + runtime.GOARCH + ")"
	for want, info := range map[string]*debug.BuildInfo{
		"unreleased":                            nil,
		"unreleased " + revision:                in("(devel)", from),
		"unreleased " + revision + ", modified": in("", from, modified),
		"v1.2.3 " + revision:                    in("v1.2.3", from),
		"v1.2.4-0.20261121100000-0123456789ab":  in("v1.2.4-0.20261121100000-0123456789ab", from),
	} {
		if got := builtOf(info).String(); got != want+end {
			t.Errorf("%s, want %s", got, want+end)
		}
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	w := &world{}
	if r := w.want(t, exitOK, []string{runtime.Version()}, "--version"); strings.Contains(r.out, "(devel)") || !strings.HasPrefix(r.out, "roundhouse ") {
		t.Error(r.out)
	}
	w.want(t, exitOK, []string{"version", runtime.Version()}, "version")
	var b built
	if r := w.want(t, exitOK, nil, "version", "-o", "json"); json.Unmarshal([]byte(r.out), &b) != nil || b != version() {
		t.Error(r.out)
	}
}

// fullDisk fails every write.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// A failed write of the output is an error, also for the help.
func TestOutputThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--help"}, {"outbox", "--help"}, {"help", "dlq"}, {"version"}, {"completion", "bash"}} {
		var errs bytes.Buffer
		m := Main{Lookup: environment(nil), Stdin: strings.NewReader(""), Stdout: fullDisk{}, Stderr: &errs}
		if code := m.Run(t.Context(), args); code != exitFailed || !strings.Contains(errs.String(), "no space left") {
			t.Errorf("%v: exit code %d, %s", args, code, errs.String())
		}
	}
}
