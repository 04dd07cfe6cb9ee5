package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/spf13/pflag"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/functionapp"
)

// azureOptions select the Function App to examine, and its program.
type azureOptions struct {
	app, group, subscription string
	program                  Program
}

func (o *azureOptions) register(f *pflag.FlagSet) {
	f.StringVar(&o.app, "app", "", "the `id` of a Function App in Azure, or its name with --group and --subscription")
	f.StringVar(&o.group, "group", "", "the resource `group` of the app, when --app is a name")
	f.StringVar(&o.subscription, "subscription", "", "the `id` of its subscription, when --app is a name")
	f.StringVar(&o.program.Path, "program", "", "the staged `program` that the app is to run, host.json beside it, such as dist/handler")
	f.StringVar(&o.program.Main, "main", ".", "the `package` of the program in the module of this folder, without --program")
}

// id returns the id of the app.
func (o azureOptions) id() (string, error) {
	id := o.app
	if !strings.HasPrefix(id, "/") {
		if o.group == "" || o.subscription == "" {
			return "", Mark(ErrUsage, errors.New("--app NAME needs --group and --subscription; or give the id of the app"))
		}
		id = "/subscriptions/" + o.subscription + "/resourceGroups/" + o.group + "/providers/Microsoft.Web/sites/" + o.app
	}
	id, err := functionapp.ParseID(id)
	return id, Mark(ErrUsage, within("--app", err))
}

// managementSetting is the app's setting for the address of Azure Resource Manager in another cloud.
const managementSetting = "ROUNDHOUSE_MANAGEMENT_URL"

// resourceManager opens Azure Resource Manager.
func (a *app) resourceManager() (*functionapp.Client, error) {
	address, _ := a.Lookup(managementSetting)
	if a.Azure != nil {
		return a.Azure(address)
	}
	credential, err := azidentity.NewDefaultAzureCredential(nil)
	if err != nil {
		return nil, fmt.Errorf("find an identity: %w", err)
	}
	return functionapp.New(functionapp.Config{Credential: credential, Endpoint: address})
}

// examineAzure reads the app of --app, if given, and compares it with the program's requirements. Its error reports
// invalid flags.
func (a *app) examineAzure(ctx context.Context, p *patient, o azureOptions) error {
	if o.app == "" {
		return nil
	}
	id, err := o.id()
	if err != nil {
		return err
	}
	c, err := a.resourceManager()
	var found functionapp.App
	if err == nil {
		err = a.probe(ctx, func(ctx context.Context) (err error) { found, err = c.Read(ctx, id); return err })
	}
	if !p.tried("azure", err, "read "+id, "az login with an identity that has Reader on the app, or correct --app") {
		return nil
	}
	p.azure = &found
	needs := a.needs(ctx, p, o.program)
	levels := map[functionapp.Level]verdict{functionapp.Fine: fine, functionapp.Watch: watch, functionapp.Broken: broken}
	for _, f := range functionapp.Examine(found, needs) {
		p.add(f.Check, levels[f.Level], f.Fix, "%s", f.Found)
	}
	a.turnTo(p)
	return nil
}

// needs asks the program for its requirements, with the app's own settings: its functions depend on them. A reference
// to a vault secret is not the value that the app gets.
func (a *app) needs(ctx context.Context, p *patient, program Program) *functionapp.Needs {
	if a.Needs == nil {
		return nil
	}
	for name, value := range p.azure.Settings.Is {
		if strings.HasPrefix(name, "ROUNDHOUSE_") && !strings.HasPrefix(value, "@Microsoft.") {
			program.Env = append(program.Env, name+"="+value)
		}
	}
	slices.Sort(program.Env)
	needs, err := a.Needs(ctx, program)
	if err != nil {
		v := broken
		if errors.Is(err, ErrMissing) {
			v = watch
		}
		p.add("azure program", v, "give --program dist/handler, or run this in the folder of the module; correct the settings that it names", "what the program needs is not known: %s", oneLine(err))
		return nil
	}
	p.add("azure program", fine, "", "it takes these settings, and needs %d functions and %d roles", len(needs.Functions), len(needs.Roles))
	return &needs
}

// turnTo makes the following checks use the same app: its address, and its storage account. Flags or settings for
// others are a finding.
func (a *app) turnTo(p *patient) {
	address := a.setting(a.flags.url, "ROUNDHOUSE_URL")
	if address == "" {
		a.flags.url = "https://" + p.azure.Host
		address = a.flags.url
	}
	if u, err := url.Parse(address); err == nil && !slices.ContainsFunc(p.azure.Hosts, func(host string) bool { return strings.EqualFold(host, u.Hostname()) }) {
		p.add("same app", broken, "leave --url and ROUNDHOUSE_URL out, or correct --app", "the address %s is none of %s", u.Redacted(), p.azure.Name)
	}
	if signIn := p.azure.SignIn.Is; a.setting(a.flags.key, "ROUNDHOUSE_KEY") == "" && a.setting(a.flags.entra, "ROUNDHOUSE_ENTRA") == "" && len(signIn.Audiences) > 0 {
		a.flags.entra = strings.TrimSuffix(signIn.Audiences[0], "/") + "/.default"
	}
	if p.azure.Settings.Err != nil {
		return
	}
	named := p.azure.Endpoints()
	theirs, err := azure.FromEnvironment(func(name string) (string, bool) { value, ok := named[name]; return value, ok }, storageSetting)
	if err != nil {
		return // the settings are already reported
	}
	if a.flags.storage == "" {
		a.Lookup = over(a.Lookup, named)
		a.flags.storage = FromSettings
		return
	}
	if ours, err := a.account(); err == nil && ours.TableEndpoint != theirs.TableEndpoint {
		p.add("same app", broken, "leave --storage out, or correct --app", "the storage account of --storage is not that of %s", p.azure.Name)
	}
}

// over reads a storage account from its own settings, and everything else as before.
func over(lookup func(string) (string, bool), named map[string]string) func(string) (string, bool) {
	named = maps.Clone(named)
	return func(name string) (string, bool) {
		if strings.HasPrefix(name, storageSetting) {
			value, ok := named[name]
			return value, ok
		}
		return lookup(name)
	}
}
