package functionapp

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
)

// The versions of the APIs.
const (
	webVersion       = "api-version=2023-12-01"
	resourcesVersion = "api-version=2021-04-01"
	vaultVersion     = "api-version=2023-07-01"
	insightsVersion  = "api-version=2020-02-02"
	rolesVersion     = "api-version=2022-04-01"
	fileVersion      = "api-version=2018-11-01"
)

// Part is a part of an app, or the reason why it could not be read.
type Part[T any] struct {
	Is  T
	Err error
}

// App is a deployed Function App, with the parts that the caller may read.
type App struct {
	ID, Name, Group, Subscription string
	// Host is its default host name, and Hosts all of them.
	Host  string
	Hosts []string
	// State is Running, or another state.
	State     string
	HTTPSOnly bool
	// Flex means that its plan is Flex Consumption, and Runtime is the plan's runtime.
	Flex    bool
	Runtime string
	// System is the principal of the system-assigned identity, "" for none; Users are the user-assigned ones.
	System string
	Users  []UserIdentity

	Settings  Part[map[string]string]
	Functions Part[[]Function]
	Status    Part[Status]
	HostFile  Part[json.RawMessage]
	SignIn    Part[SignIn]
	// Storage, Vault and Insights are those that the settings name.
	Storage, Vault, Insights Part[Target]
}

// UserIdentity is a user-assigned identity.
type UserIdentity struct{ ClientID, PrincipalID string }

// Function is a function that the host has found.
type Function struct {
	Name     string
	Disabled bool
}

// Status is the host's own status.
type Status struct {
	State, Version string
	Errors         []string
}

// SignIn is the authentication of the platform.
type SignIn struct {
	Enabled, Required bool
	Excluded          []string
	Audiences         []string
}

// Target is a resource that the app uses.
type Target struct {
	ID string
	// Roles are the GUIDs of the app identity's role definitions at the resource or above it.
	Roles []string
	// ByPolicies means that a vault uses access policies, and not roles.
	ByPolicies bool
}

// ParseID checks the id of an app, or of a slot.
func ParseID(id string) (string, error) {
	parsed, err := arm.ParseResourceID(id)
	if err != nil {
		return "", ErrNotApp
	}
	kind := strings.ToLower(parsed.ResourceType.String())
	if kind != "microsoft.web/sites" && kind != "microsoft.web/sites/slots" || strings.ContainsAny(id, "?#%") {
		return "", ErrNotApp
	}
	return parsed.String(), nil
}

// site is the app in Azure Resource Manager.
type site struct {
	Identity *struct {
		PrincipalID            string `json:"principalId"`
		UserAssignedIdentities map[string]struct {
			ClientID    string `json:"clientId"`
			PrincipalID string `json:"principalId"`
		} `json:"userAssignedIdentities"`
	} `json:"identity"`
	Properties struct {
		State, DefaultHostName string
		HostNames              []string
		HTTPSOnly              bool `json:"httpsOnly"`
		FunctionAppConfig      *struct{ Runtime struct{ Name string } }
	}
}

// Read reads an app. Its error means that the app itself is unreadable; unreadable parts have their own errors.
func (c *Client) Read(ctx context.Context, id string) (App, error) {
	id, err := ParseID(id)
	if err != nil {
		return App{}, err
	}
	var s site
	if err := c.get(ctx, id, webVersion, &s); err != nil {
		return App{}, err
	}
	parsed, _ := arm.ParseResourceID(id) // ParseID has checked it
	p := s.Properties
	app := App{ID: id, Name: parsed.Name, Group: parsed.ResourceGroupName, Subscription: parsed.SubscriptionID,
		Host: p.DefaultHostName, Hosts: append(p.HostNames, p.DefaultHostName), State: p.State, HTTPSOnly: p.HTTPSOnly, Flex: p.FunctionAppConfig != nil}
	if app.Flex {
		app.Runtime = p.FunctionAppConfig.Runtime.Name
	}
	if s.Identity != nil {
		app.System = s.Identity.PrincipalID
		for _, user := range s.Identity.UserAssignedIdentities {
			app.Users = append(app.Users, UserIdentity{ClientID: user.ClientID, PrincipalID: user.PrincipalID})
		}
	}
	var settings struct{ Properties map[string]string }
	app.Settings.Err = c.ask(ctx, http.MethodPost, c.endpoint+id+"/config/appsettings/list?"+webVersion, &settings)
	app.Settings.Is = settings.Properties
	c.readFunctions(ctx, &app)
	c.readHost(ctx, &app)
	c.readSignIn(ctx, &app)
	if app.Settings.Err == nil {
		c.readTargets(ctx, &app)
	}
	return app, nil
}

func (c *Client) readFunctions(ctx context.Context, app *App) {
	type row struct {
		Properties struct {
			Name       string
			IsDisabled bool `json:"isDisabled"`
		}
	}
	rows, err := list[row](ctx, c, app.ID+"/functions", webVersion)
	app.Functions.Err = err
	for _, r := range rows {
		app.Functions.Is = append(app.Functions.Is, Function{Name: r.Properties.Name, Disabled: r.Properties.IsDisabled})
	}
}

func (c *Client) readHost(ctx context.Context, app *App) {
	var status struct{ Properties Status }
	app.Status.Err = c.get(ctx, app.ID+"/host/default/properties/status", webVersion, &status)
	app.Status.Is = status.Properties
	app.HostFile.Err = c.get(ctx, app.ID+"/hostruntime/admin/vfs/host.json", "relativePath=1&"+fileVersion, &app.HostFile.Is)
}

func (c *Client) readSignIn(ctx context.Context, app *App) {
	var auth struct {
		Properties struct {
			Platform         struct{ Enabled bool }
			GlobalValidation struct {
				RequireAuthentication bool
				ExcludedPaths         []string
			}
			IdentityProviders struct {
				AzureActiveDirectory struct {
					Validation struct{ AllowedAudiences []string }
				}
			}
		}
	}
	app.SignIn.Err = c.get(ctx, app.ID+"/config/authsettingsV2", webVersion, &auth)
	p := auth.Properties
	app.SignIn.Is = SignIn{Enabled: p.Platform.Enabled, Required: p.GlobalValidation.RequireAuthentication, Excluded: p.GlobalValidation.ExcludedPaths,
		Audiences: p.IdentityProviders.AzureActiveDirectory.Validation.AllowedAudiences}
}

// readTargets finds the resources in the settings in the subscription of the app, and the roles there.
func (c *Client) readTargets(ctx context.Context, app *App) {
	principal := app.Principal()
	if name := app.StorageName(); name != "" {
		app.Storage.Is, app.Storage.Err = c.named(ctx, app.Subscription, "Microsoft.Storage/storageAccounts", name, principal)
	}
	if name := vaultName(app.Settings.Is[vaultSetting]); name != "" {
		app.Vault.Is, app.Vault.Err = c.named(ctx, app.Subscription, "Microsoft.KeyVault/vaults", name, principal)
		if app.Vault.Err == nil {
			var vault struct {
				Properties struct{ EnableRbacAuthorization bool }
			}
			app.Vault.Err = c.get(ctx, app.Vault.Is.ID, vaultVersion, &vault)
			app.Vault.Is.ByPolicies = !vault.Properties.EnableRbacAuthorization
		}
	}
	if key := insightsKey(app.Settings.Is[insightsSetting]); key != "" {
		app.Insights.Is, app.Insights.Err = c.component(ctx, app.Subscription, key, principal)
	}
}

// errElsewhere: a resource is not in the searched subscription.
type errElsewhere struct{ what string }

func (e errElsewhere) Error() string {
	return e.what + " is not among what you may read in the subscription of the app"
}

// named finds a resource by its name, which is unique for its type.
func (c *Client) named(ctx context.Context, subscription, kind, name, principal string) (Target, error) {
	filter := url.QueryEscape("resourceType eq '" + kind + "' and name eq '" + strings.ReplaceAll(name, "'", "''") + "'")
	type row struct{ ID string }
	found, err := list[row](ctx, c, "/subscriptions/"+subscription+"/resources", "$filter="+filter+"&"+resourcesVersion)
	if err != nil {
		return Target{}, err
	}
	if len(found) != 1 {
		return Target{}, errElsewhere{kind + " " + name}
	}
	return c.assigned(ctx, found[0].ID, principal)
}

// component finds an Application Insights component by its key, which is no secret, but not shown.
func (c *Client) component(ctx context.Context, subscription, key, principal string) (Target, error) {
	type row struct {
		ID         string
		Properties struct{ InstrumentationKey string }
	}
	found, err := list[row](ctx, c, "/subscriptions/"+subscription+"/providers/Microsoft.Insights/components", insightsVersion)
	if err != nil {
		return Target{}, err
	}
	i := slices.IndexFunc(found, func(r row) bool { return strings.EqualFold(r.Properties.InstrumentationKey, key) })
	if i < 0 {
		return Target{}, errElsewhere{"the Application Insights component of " + insightsSetting}
	}
	return c.assigned(ctx, found[i].ID, principal)
}

// assigned reads the roles of a principal at a resource. Roles below it do not count.
func (c *Client) assigned(ctx context.Context, id, principal string) (Target, error) {
	target := Target{ID: id}
	if principal == "" {
		return target, nil
	}
	type row struct {
		Properties struct {
			RoleDefinitionID string `json:"roleDefinitionId"`
			Scope            string
		}
	}
	filter := url.QueryEscape("principalId eq '" + principal + "'")
	rows, err := list[row](ctx, c, id+"/providers/Microsoft.Authorization/roleAssignments", "$filter="+filter+"&"+rolesVersion)
	for _, r := range rows {
		if r.Properties.Scope == "/" || within(id, r.Properties.Scope) {
			target.Roles = append(target.Roles, strings.ToLower(r.Properties.RoleDefinitionID[strings.LastIndex(r.Properties.RoleDefinitionID, "/")+1:]))
		}
	}
	return target, err
}

// within reports whether an id is a scope, or below it. Management groups are above every subscription that names
// them.
func within(id, scope string) bool {
	id, scope = strings.ToLower(id)+"/", strings.ToLower(strings.TrimSuffix(scope, "/"))+"/"
	return strings.HasPrefix(id, scope) || strings.HasPrefix(scope, "/providers/microsoft.management/managementgroups/")
}
