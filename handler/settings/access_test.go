package settings

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/handler/quota"
)

const home = "7d6a8a3e-0a0c-4c8e-9f0b-1d2c3b4a5e6f"

// signIn is the environment of the platform, with authentication on.
var signIn = emulator.With("WEBSITE_SITE_NAME", "app", "WEBSITE_AUTH_ENABLED", "True")

// local is the environment of a host on a developer's machine.
var local = emulator.With("AZURE_FUNCTIONS_ENVIRONMENT", "Development", "FUNCTIONS_CORETOOLS_ENVIRONMENT", "true")

func TestAccessSettings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		env  map[string]string
		want Access
	}{
		"nothing":            {emulator, Access{AuditKeep: 400 * day}},
		"people sign in":     {signIn, Access{Control: access.Control{EasyAuth: true}, AuditKeep: 400 * day}},
		"they do not":        {signIn.With("WEBSITE_AUTH_ENABLED", "False"), Access{AuditKeep: 400 * day}},
		"a home tenant":      {signIn.With(homeTenantSetting, home), Access{Control: access.Control{EasyAuth: true, Policy: access.Policy{HomeTenant: home}}, AuditKeep: 400 * day}},
		"kept for a quarter": {emulator.With(auditSetting, "2160h"), Access{AuditKeep: 90 * day}},
		"roles": {signIn.With(homeTenantSetting, home, rolesSetting, `{"reader": {"appRoles": ["Viewer"]}, "operator": {"groups": ["`+home+`"]}, "otherTenants": "reader", "keys": "none"}`),
			Access{Control: access.Control{EasyAuth: true, Policy: access.Policy{HomeTenant: home, Reader: access.Members{AppRoles: []string{"Viewer"}},
				Operator: access.Members{Groups: []string{home}}, OtherTenants: access.Reader, Keys: "none"}}, AuditKeep: 400 * day}},
		"another limit":                    {emulator.With(limitSetting, "1000"), Access{AuditKeep: 400 * day, CallerLimit: 1000}},
		"a limit on a developer's machine": {local.With(limitSetting, "9"), Access{Control: access.Control{Development: true}, AuditKeep: 400 * day, CallerLimit: 9}},
		"a developer's machine":            {local, Access{Control: access.Control{Development: true}, AuditKeep: 400 * day}},
		"with a key":                       {local.With("ROUNDHOUSE_LOCAL_KEY", "k"), Access{Control: access.Control{Development: true, LocalKey: "k"}, AuditKeep: 400 * day}},
		"development in Azure":             {local.With("WEBSITE_SITE_NAME", "app"), Access{AuditKeep: 400 * day}},
		"development in an instance":       {local.With("WEBSITE_INSTANCE_ID", "1"), Access{AuditKeep: 400 * day}},
		"development in a container app":   {local.With("CONTAINER_APP_NAME", "1"), Access{AuditKeep: 400 * day}},
		"development in a container":       {local.With("CONTAINER_NAME", "1"), Access{Control: access.Control{Development: true}, AuditKeep: 400 * day}},
		"development without a local host": {emulator.With("AZURE_FUNCTIONS_ENVIRONMENT", "Development"), Access{AuditKeep: 400 * day}},
		"a local host in production":       {emulator.With("FUNCTIONS_CORETOOLS_ENVIRONMENT", "true"), Access{AuditKeep: 400 * day}},
	} {
		if !c.want.Development && c.want.CallerLimit == 0 {
			c.want.CallerLimit = quota.DefaultPerSecond
		}
		env := emulator.With()
		for name, value := range c.env {
			env[name] = value
		}
		s, err := Load(NewReader(env.Lookup))
		if diff := cmp.Diff(c.want, s.Access); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

// An invalid access policy stops the app, and the error names the setting.
func TestBadAccessSettings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pairs     []string
		complaint string
	}{
		"the home tenant by name":      {[]string{homeTenantSetting, "contoso.com"}, homeTenantSetting},
		"no document":                  {[]string{rolesSetting, "Keeper"}, rolesSetting},
		"a list":                       {[]string{rolesSetting, "[]"}, rolesSetting},
		"two documents":                {[]string{rolesSetting, "{}{}"}, rolesSetting},
		"an unknown role":              {[]string{rolesSetting, `{"keeper": {"appRoles": ["Keeper"]}}`}, "keeper"},
		"a role as a list":             {[]string{rolesSetting, `{"reader": ["Viewer"]}`}, rolesSetting},
		"an app role without a name":   {[]string{rolesSetting, `{"reader": {"appRoles": [""]}}`}, "reader"},
		"a group by name":              {[]string{homeTenantSetting, home, rolesSetting, `{"operator": {"groups": ["Operators"]}}`}, "object id"},
		"a group of no tenant":         {[]string{rolesSetting, `{"operator": {"groups": ["` + home + `"]}}`}, "home tenant"},
		"administrators of others":     {[]string{rolesSetting, `{"otherTenants": "administrator"}`}, "otherTenants"},
		"keys that read":               {[]string{rolesSetting, `{"keys": "reader"}`}, "keys"},
		"the setting of before":        {[]string{"ROUNDHOUSE_ADMIN_ROLE", "Keeper"}, rolesSetting},
		"an audit log of a day":        {[]string{auditSetting, "24h"}, auditSetting},
		"no number of transactions":    {[]string{limitSetting, "many"}, limitSetting},
		"a limit below zero":           {[]string{limitSetting, "-1"}, limitSetting},
		"a limit above all":            {[]string{limitSetting, "20001"}, limitSetting},
		"an audit log for days":        {[]string{auditSetting, "400d"}, auditSetting},
		"people on a local host":       {[]string{"AZURE_FUNCTIONS_ENVIRONMENT", "Development", "FUNCTIONS_CORETOOLS_ENVIRONMENT", "true", "WEBSITE_AUTH_ENABLED", "true"}, "WEBSITE_AUTH_ENABLED"},
		"a local key outside of there": {[]string{"ROUNDHOUSE_LOCAL_KEY", "a-secret"}, "local key"},
	} {
		r := NewReader(emulator.With(c.pairs...).Lookup)
		_, err := Load(r)
		if err = errors.Join(err, r.Err()); err == nil || !strings.Contains(err.Error(), c.complaint) || strings.Contains(err.Error(), "a-secret") {
			t.Errorf("%s: %v, want %q in it", name, err, c.complaint)
		}
	}
	if _, err := Load(NewReader(emulator.With(auditSetting, (31 * 24 * time.Hour).String()).Lookup)); err != nil {
		t.Errorf("the least that an audit log is kept: %v", err)
	}
}
