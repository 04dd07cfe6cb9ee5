package check

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/vibedata/roundhouse/internal/testenv"
)

// workflows returns the repository's workflows and those that roundhouse new creates.
func workflows(t *testing.T) []string {
	t.Helper()
	ours, err := filepath.Glob(filepath.Join(root, ".github", "workflows", "*.yml"))
	theirs, err2 := filepath.Glob(filepath.Join(root, "cmd", "roundhouse", "internal", "scaffold", "files", ".github", "workflows", "*.yml.tmpl"))
	if err := errors.Join(err, err2); err != nil || len(ours) < 2 || len(theirs) < 2 {
		t.Fatalf("%q, %q, %v", ours, theirs, err)
	}
	return append(ours, theirs...)
}

// actionlint finds no mistakes in the workflows, and every action is pinned to a commit, so that its owner cannot
// change it.
func TestWorkflows(t *testing.T) {
	t.Parallel()
	testenv.Long(t)
	action := regexp.MustCompile(`uses: (\S+)`)
	pinned := regexp.MustCompile(`^[\w.-]+/[\w./-]+@[0-9a-f]{40}$`)
	for _, path := range workflows(t) {
		workflow := text(t, "deploy", "check", path)
		if out, err := lint(t, workflow); err != nil {
			t.Errorf("%s: %v\n%s", path, err, out)
		}
		for _, use := range action.FindAllStringSubmatch(workflow, -1) {
			if !pinned.MatchString(use[1]) {
				t.Errorf("%s: %s is not pinned to a commit", path, use[1])
			}
		}
	}
	const mistake = "on: push\njobs:\n  a:\n    runs-on: ubuntu-24.04\n    steps:\n      - run: echo ${{ steps.none.outputs.x }}\n"
	if out, err := lint(t, mistake); err == nil || !strings.Contains(out, "none") {
		t.Errorf("a mistake is not found: %v\n%s", err, out)
	}
}

// lint runs actionlint on a workflow.
func lint(t *testing.T, workflow string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "tool", "actionlint", "-")
	cmd.Stdin = strings.NewReader(workflow)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// schemas is the environment variable with a folder that contains azure.yaml.json, host.json and function.json: JSON
// schemas as their owners publish them.
const schemas = "ROUNDHOUSE_SCHEMAS"

// unloaded replaces schemas that other schemas refer to; it accepts everything.
type unloaded struct{}

// Load implements jsonschema.URLLoader.
func (unloaded) Load(string) (any, error) { return map[string]any{}, nil }

// azure.yaml, host.json and every function.json conform to the published schemas.
func TestSchemas(t *testing.T) {
	t.Parallel()
	dir := os.Getenv(schemas)
	if dir == "" {
		testenv.Skip(t, schemas+": name a folder with the published schemas azure.yaml.json, host.json and function.json")
	}
	functions, err := filepath.Glob(filepath.Join(root, "functions", "*", "function.json"))
	if err != nil || len(functions) < 50 {
		t.Fatalf("%d functions, %v", len(functions), err)
	}
	for schema, paths := range map[string][]string{
		"azure.yaml.json": {filepath.Join(root, "azure.yaml")}, "host.json": {filepath.Join(root, "host.json")}, "function.json": functions,
	} {
		t.Run(schema, func(t *testing.T) {
			t.Parallel()
			file, err := os.Open(filepath.Join(dir, schema))
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			c := jsonschema.NewCompiler()
			c.UseLoader(unloaded{})
			document, err := jsonschema.UnmarshalJSON(file)
			if err == nil {
				// These schemas declare draft 4 but use keywords of later drafts. Under draft 4 every binding would
				// match two kinds.
				if object, ok := document.(map[string]any); ok && strings.Contains(fmt.Sprint(object["$schema"]), "draft-04") {
					object["$schema"] = "http://json-schema.org/draft-07/schema#"
				}
				err = c.AddResource("schema.json", document)
			}
			if err != nil {
				t.Fatal(err)
			}
			compiled, err := c.Compile("schema.json")
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range paths {
				document := read(t, path)
				if err := compiled.Validate(document); err != nil {
					t.Errorf("%s: %v", path, err)
				}
				spoil(document)
				if compiled.Validate(document) == nil {
					t.Errorf("%s: the schema does not notice a list in place of a text", path)
				}
			}
		})
	}
}

// spoil gives a document's name, version or bindings a value of a wrong type.
func spoil(document any) {
	object := document.(map[string]any)
	for _, key := range []string{"name", "version"} {
		if _, ok := object[key]; ok {
			object[key] = []any{}
			return
		}
	}
	object["bindings"] = "none"
}

// read returns a JSON or YAML document in the form that the validator requires.
func read(t *testing.T, path string) any {
	t.Helper()
	var value any
	err := yaml.Unmarshal([]byte(text(t, "deploy", "check", path)), &value) // JSON is YAML
	plain, err2 := json.Marshal(value)
	if err = errors.Join(err, err2); err == nil {
		value, err = jsonschema.UnmarshalJSON(bytes.NewReader(plain))
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return value
}

// The compiler builds the template, and its linter has no findings.
func TestCompiler(t *testing.T) {
	t.Parallel()
	testenv.Long(t)
	if _, err := exec.LookPath("bicep"); err != nil {
		testenv.Skip(t, "bicep: az bicep install, and ~/.azure/bin in PATH")
	}
	for _, command := range []string{"build", "lint"} {
		args := []string{command, template}
		if command == "build" {
			args = append(args, "--outfile", filepath.Join(t.TempDir(), "main.json"))
		}
		if out, err := exec.CommandContext(t.Context(), "bicep", args...).CombinedOutput(); err != nil || strings.Contains(string(out), ": Warning ") {
			t.Errorf("bicep %s: %v\n%s", command, err, out)
		}
	}
}

// The image builds from the staged files.
func TestImage(t *testing.T) {
	t.Parallel()
	testenv.Long(t)
	if err := exec.CommandContext(t.Context(), "docker", "info").Run(); err != nil {
		testenv.Skip(t, "docker: a daemon that builds images")
	}
	if _, err := os.Stat(filepath.Join(root, "dist", "handler")); err != nil {
		testenv.Skip(t, "dist: scripts/stage")
	}
	cmd := exec.CommandContext(t.Context(), "docker", "build", "--quiet", ".")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
