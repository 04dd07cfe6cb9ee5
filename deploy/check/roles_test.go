package check

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/deploy/check/bicep"
)

// scopes returns the types that roles are assigned at, by their names in the manifest.
func scopes() map[string]string {
	return map[string]string{"storage": "Microsoft.Storage/storageAccounts", "vault": "Microsoft.KeyVault/vaults", "insights": "Microsoft.Insights/components"}
}

// acrPull allows a container app to pull its image; the plan needs it, not the program.
const acrPull = "7f951dda-4ed3-4680-a7ca-43fe172d538d"

// assigned returns the roles of a deployment as type and ID, and the mistakes in their scopes.
func assigned(d *bicep.Deployment) (roles, found []string) {
	for _, r := range of(d, "Microsoft.Authorization/roleAssignments") {
		at := "everything"
		if r.Scope != nil {
			at, _, _ = strings.Cut(r.Scope.Type, "@")
			if r.Scope.Existing && !slices.ContainsFunc(of(d, at), func(made *bicep.Resource) bool { return made.Name() == r.Scope.Name() }) {
				found = append(found, fmt.Sprintf("%s:%d: there is no %s %s", r.File, r.Line, at, r.Scope.Name()))
			}
		}
		if principal := fmt.Sprint(r.Body.Get("properties", "principalId")); !strings.HasPrefix(principal, "principal of id-") {
			found = append(found, fmt.Sprintf("%s:%d: the role is that of %s", r.File, r.Line, principal))
		}
		roles = append(roles, at+" "+path.Base(fmt.Sprint(r.Body.Get("properties", "roleDefinitionId"))))
	}
	slices.Sort(roles)
	return roles, found
}

// roleFindings returns the mistakes in the roles of a template.
func roleFindings(t *testing.T, file string) []string {
	t.Helper()
	var found []string
	for _, context := range contexts() {
		m := describe(t, context)
		for _, plan := range plans() {
			for _, key := range []string{"", "payloads"} {
				params := inContext(context, plan)
				params["payloadKey"] = key
				d := deployFile(t, file, params)
				set := settingsOf(t, d)
				var want []string
				for _, role := range m.Roles {
					if role.With == "" || set[role.With] != "" {
						want = append(want, scopes()[role.Scope]+" "+role.ID)
					}
				}
				if plan == "container-apps" {
					want = append(want, "Microsoft.ContainerRegistry/registries "+acrPull)
				}
				slices.Sort(want)
				got, misplaced := assigned(d)
				found = append(found, misplaced...)
				if !slices.Equal(got, want) {
					found = append(found, fmt.Sprintf("%s on %s, key %q:\nassigned %q\nneeded   %q", context, plan, key, got, want))
				}
			}
		}
	}
	return found
}

// Two apps in one environment share only the logs: each has its own identity, storage account and vault, and its
// roles are for these only.
func TestApart(t *testing.T) {
	t.Parallel()
	d := deploy(t, map[string]any{"managedApp": true})
	owners := map[string]map[string]bool{}
	for _, r := range of(d, "Microsoft.Authorization/roleAssignments") {
		if kind, _, _ := strings.Cut(r.Scope.Type, "@"); kind != scopes()["insights"] {
			place := kind + " " + r.Scope.Name()
			if owners[place] == nil {
				owners[place] = map[string]bool{}
			}
			owners[place][fmt.Sprint(r.Body.Get("properties", "principalId"))] = true
		}
	}
	for place, of := range owners {
		if len(of) != 1 {
			t.Errorf("%s is open to %v", place, slices.Collect(maps.Keys(of)))
		}
	}
	if len(owners) != 4 {
		t.Errorf("roles are assigned at %v", slices.Collect(maps.Keys(owners)))
	}
}
