package docs

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/internal/testenv"
)

// address is the address of a local app in the documents.
const address = "http://127.0.0.1:7071"

// keyFile is the key file of that app in the documents.
const keyFile = ".run/key"

// unrun are the words after sh for commands that no test runs: their prerequisites.
func unrun() []string {
	return []string{
		"azure",    // a subscription
		"damage",   // an unreadable orchestration
		"database", // a database with the table
		"make",     // everything that the targets do
		tutorial,   // the module of the tutorial
	}
}

// The commands of a page run, one block after the other in one shell, with a fresh app.
func TestCommands(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	testenv.Programs(t, "bash", "curl", "grep", "sed") // those of the pages
	for _, p := range pages(t) {
		script := p.script()
		if script == "" {
			continue
		}
		t.Run(p.path, func(t *testing.T) {
			a := start(t)
			file := filepath.Join(t.TempDir(), "page.sh")
			curl := t.TempDir()
			if err := os.WriteFile(file, []byte(strings.NewReplacer(address, a.url, keyFile, a.keyFile).Replace(script)), 0o600); err != nil {
				t.Fatal(err)
			}
			// An app on an overloaded machine may ask its caller to repeat a request later.
			if err := os.WriteFile(filepath.Join(curl, ".curlrc"), []byte("silent\nshow-error\nfail-with-body\nretry = 10\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(testenv.Context(t), "bash", "--noprofile", "--norc", "-euxo", "pipefail", file)
			cmd.Dir = root
			cmd.Env = append(os.Environ(), "PATH="+build(t).bin+string(os.PathListSeparator)+os.Getenv("PATH"),
				"CURL_HOME="+curl, "ROUNDHOUSE_URL="+a.url, "ROUNDHOUSE_KEY="+a.key, "AzureWebJobsStorage="+a.storage, "ROUNDHOUSE_ENVIRONMENT=development")
			if err := run(cmd); err != nil {
				t.Error(err)
			}
		})
	}
}

// Commands that no test runs are valid shell, and name their prerequisites; those for make name existing targets.
func TestCommandsThatNobodyRuns(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	testenv.Programs(t, "bash")
	makefile := testenv.Must(os.ReadFile(filepath.Join(root, "Makefile")))(t)
	for _, b := range blocksOf(t, "sh") {
		if len(b.words) == 0 {
			continue
		}
		if len(b.words) > 1 || !slices.Contains(unrun(), b.words[0]) {
			t.Errorf("%s:%d: %q behind sh is none of %q", b.page, b.line, b.words, unrun())
		}
		check := exec.CommandContext(t.Context(), "bash", "-n")
		check.Stdin = strings.NewReader(b.text)
		if err := run(check); err != nil {
			t.Errorf("%s:%d: %v", b.page, b.line, err)
		}
		if b.words[0] != "make" {
			continue
		}
		for line := range strings.Lines(b.text) {
			words := strings.Fields(line)
			if len(words) < 2 || words[0] != "make" || !bytes.Contains(makefile, []byte("\n"+words[1]+":")) {
				t.Errorf("%s:%d: %q is no target of the Makefile", b.page, b.line, line)
			}
		}
	}
}

// Every block names its language: output is text.
func TestLanguages(t *testing.T) {
	t.Parallel()
	known := []string{"sh", "go", "json", "csharp", "text", "diff"}
	placeholder := regexp.MustCompile(`<[a-z][a-z -]*>`)
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			if !slices.Contains(known, b.language) {
				t.Errorf("%s:%d: the language of the block is %q and none of %q", b.page, b.line, b.language, known)
			}
			if b.language == "sh" && placeholder.MatchString(b.text) {
				t.Errorf("%s:%d: what the shell reads as a redirection is no placeholder: write a name in capitals", b.page, b.line)
			}
		}
	}
}

// script returns the commands of all blocks of a page, "" for a page without commands.
func (p page) script() string {
	var script strings.Builder
	for _, b := range p.blocks {
		if b.language == "sh" && len(b.words) == 0 {
			fmt.Fprintf(&script, ": %s:%d\n%s", b.page, b.line, b.text)
		}
	}
	return script.String()
}
