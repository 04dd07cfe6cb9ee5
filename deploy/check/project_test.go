package check

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// project is azure.yaml, limited to the members that the tests use.
type project struct {
	Name             string
	Metadata         struct{ Template string }
	RequiredVersions struct{ Azd string } `yaml:"requiredVersions"`
	Infra            struct{ Provider, Path, Module string }
	Hooks            map[string]hook
	Services         map[string]struct {
		Project, Host, Language, Dist, Condition string
		Hooks                                    map[string]hook
	}
}

type hook struct{ Shell, Run string }

// readProject reads azure.yaml and refuses unknown members.
func readProject(t *testing.T) project {
	t.Helper()
	var p project
	decoder := yaml.NewDecoder(strings.NewReader(text(t, "azure.yaml")))
	decoder.KnownFields(true)
	if err := decoder.Decode(&p); err != nil {
		t.Fatal(err)
	}
	return p
}

// azd finds the template, and its services are the apps that the template tags for them.
func TestProject(t *testing.T) {
	t.Parallel()
	p := readProject(t)
	if p.Infra.Provider != "bicep" || filepath.Join(root, p.Infra.Path, p.Infra.Module+".bicep") != filepath.Join(root, "deploy", "main.bicep") {
		t.Errorf("%+v", p.Infra)
	}
	var marked []string
	for _, r := range of(deploy(t, map[string]any{"managedApp": true}), "Microsoft.Web/sites") {
		marked = append(marked, fmt.Sprint(r.Body.Get("tags", "azd-service-name")))
	}
	slices.Sort(marked)
	if services := slices.Sorted(maps.Keys(p.Services)); !slices.Equal(services, marked) {
		t.Errorf("the services are %q, and the template marks %q", services, marked)
	}
	conditions := map[string]string{"publisher": "publisher", "managed-app": "managedApp"}
	values := parameters(t)
	for name, s := range p.Services {
		prepackage := s.Hooks["prepackage"].Run
		if s.Language != "custom" || s.Host != "function" || s.Project != "." || s.Dist == "" || prepackage != "ROUNDHOUSE_CONTEXT="+name+" scripts/stage "+s.Dist {
			t.Errorf("%s: %+v", name, s)
		}
		if s.Condition != values[conditions[name]] {
			t.Errorf("%s is deployed where %s, and made where %s", name, s.Condition, values[conditions[name]])
		}
	}
	for event, h := range p.Hooks {
		info, err := os.Stat(filepath.Join(root, h.Run))
		if err != nil || info.Mode()&0o111 == 0 {
			t.Errorf("the hook %s cannot be executed: %v", event, err)
		}
	}
}

// parameters returns the parameters that azd passes to the template, as the file contains them.
func parameters(t *testing.T) map[string]string {
	t.Helper()
	var file struct {
		Parameters map[string]struct{ Value string }
	}
	err := json.Unmarshal([]byte(text(t, "deploy", "main.parameters.json")), &file)
	if err != nil || len(file.Parameters) == 0 {
		t.Fatalf("%d parameters, %v", len(file.Parameters), err)
	}
	values := map[string]string{}
	for name, p := range file.Parameters {
		values[name] = p.Value
	}
	return values
}

// variable matches azd's notation of an environment variable with its default.
var variable = regexp.MustCompile(`^\$\{([A-Z_]+)(=([^}]*))?\}$`)

// azd passes only existing parameters to the template, with the template's defaults. docs/deploy.md documents each
// environment variable, and the workflow passes all of them on.
func TestParameters(t *testing.T) {
	t.Parallel()
	source, page, workflow := text(t, "deploy", "main.bicep"), text(t, "docs", "deploy.md"), text(t, ".github", "workflows", "deploy.yml")
	for name, value := range parameters(t) {
		parts := variable.FindStringSubmatch(value)
		if parts == nil {
			t.Errorf("%s is %q, which is no variable", name, value)
			continue
		}
		declared := regexp.MustCompile(`(?m)^param ` + name + ` (string|bool|int|object)( = '?([^'\n]*)'?)?$`).FindStringSubmatch(source)
		if declared == nil {
			t.Errorf("the template has no parameter %s", name)
			continue
		}
		// JSON documents have no default there: azd omits parameters that are not set.
		if parts[2] != "" && parts[3] != declared[3] || declared[1] == "object" && parts[2] != "" {
			t.Errorf("%s: azd's default is %q, the template's %q", name, parts[3], declared[3])
		}
		if !strings.Contains(page, "`"+parts[1]+"`") {
			t.Errorf("docs/deploy.md says nothing of %s", parts[1])
		}
		if !strings.HasSuffix(parts[1], "_IMAGE") && !strings.Contains(workflow, "      "+parts[1]+": ${{ vars."+parts[1]) {
			t.Errorf("the workflow does not hand %s on", parts[1])
		}
	}
	for _, declared := range regexp.MustCompile(`(?m)^param (\w+)`).FindAllStringSubmatch(source, -1) {
		if _, given := parameters(t)[declared[1]]; !given {
			t.Errorf("azd cannot set the parameter %s", declared[1])
		}
	}
}

// The image contains only existing files, runs as an unprivileged user and contains no secrets.
func TestDockerfile(t *testing.T) {
	t.Parallel()
	words := map[string][]string{}
	for line := range strings.Lines(strings.ReplaceAll(text(t, "Dockerfile"), "\\\n", " ")) {
		if fields := strings.Fields(line); len(fields) > 0 && fields[0] != "#" {
			words[fields[0]] = append(words[fields[0]], strings.Join(fields[1:], " "))
		}
	}
	if got := words["ARG"]; len(got) != 2 || !regexp.MustCompile(`^FUNCTIONS_IMAGE=mcr\.microsoft\.com/azure-functions/dotnet:4$`).MatchString(got[0]) || got[1] != "DIST="+readProject(t).Services["publisher"].Dist {
		t.Errorf("arguments %q", got)
	}
	if got := words["FROM"]; len(got) != 1 || got[0] != "${FUNCTIONS_IMAGE}" {
		t.Errorf("base %q", got)
	}
	if got := words["COPY"]; len(got) != 1 || got[0] != "${DIST} /home/site/wwwroot" {
		t.Errorf("copies %q", got)
	}
	if got := words["USER"]; len(got) != 1 || got[0] == "root" || strings.HasPrefix(got[0], "0") {
		t.Errorf("it runs as %q", got)
	}
	environment := strings.Join(words["ENV"], " ")
	for _, want := range []string{"AzureWebJobsScriptRoot=/home/site/wwwroot", "FUNCTIONS_WORKER_RUNTIME=custom", "ASPNETCORE_URLS=http://+:8080"} {
		if !strings.Contains(environment, want) {
			t.Errorf("the environment is %q, without %s", environment, want)
		}
	}
	if secret := regexp.MustCompile(`(?i)(key|secret|password|token|connection)\w*=`).FindString(environment); secret != "" {
		t.Errorf("%q looks like a secret", secret)
	}
	if ignored := text(t, ".dockerignore"); ignored != "*\n!dist\n!dist-managed-app\n" {
		t.Errorf("more than what is staged goes to the builder: %q", ignored)
	}
	if port := words["EXPOSE"]; len(port) != 1 || port[0] != "8080" {
		t.Errorf("port %q", port)
	}
}
