package settings

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/handler/access"
)

const (
	rolesSetting      = "ROUNDHOUSE_ROLES"
	homeTenantSetting = "ROUNDHOUSE_HOME_TENANT"
	auditSetting      = "ROUNDHOUSE_AUDIT_RETENTION"
	// defaultAuditKeep is how long the audit log is kept, leastAuditKeep the least that it can be.
	defaultAuditKeep = 400 * 24 * time.Hour
	leastAuditKeep   = 31 * 24 * time.Hour
)

// Access says who may do what, and for how long it is kept who did what.
type Access struct {
	access.Control
	// AuditKeep is how long the audit log is kept (ROUNDHOUSE_AUDIT_RETENTION, a Go duration; 400 days unless set).
	AuditKeep time.Duration
}

// accessFrom reads ROUNDHOUSE_ROLES, ROUNDHOUSE_HOME_TENANT, ROUNDHOUSE_AUDIT_RETENTION, and what the platform and the local
// host say of themselves.
func accessFrom(r *Reader) (Access, error) {
	var s Access
	var errs [4]error
	r.JSON(rolesSetting, &s.Policy)
	s.Policy.HomeTenant = r.Text(homeTenantSetting)
	s.EasyAuth = strings.EqualFold(r.Text("WEBSITE_AUTH_ENABLED"), "true")
	s.Development = developersMachine(r)
	s.LocalKey = r.Text("ROUNDHOUSE_LOCAL_KEY")
	if err := s.Policy.Validate(); err != nil {
		errs[0] = fmt.Errorf("%s, %s: %w", rolesSetting, homeTenantSetting, err)
	} else {
		errs[1] = s.Control.Validate()
	}
	if r.Text("ROUNDHOUSE_ADMIN_ROLE") != "" {
		errs[2] = errors.New(`ROUNDHOUSE_ADMIN_ROLE is not read any more: set ROUNDHOUSE_ROLES, to {"administrator": {"appRoles": [...]}}`)
	}
	s.AuditKeep, errs[3] = keepSetting(r, auditSetting, defaultAuditKeep, leastAuditKeep)
	return s, errors.Join(errs[:]...)
}

// developersMachine says whether the host is one of a developer: it is the local host or that of Core Tools, which say so, and
// there is no sign of the platform. CONTAINER_NAME, which one plan has beside its WEBSITE_SITE_NAME, is none: other containers
// have it, too, those that people develop in for example.
func developersMachine(r *Reader) bool {
	for _, name := range []string{"WEBSITE_INSTANCE_ID", "WEBSITE_SITE_NAME", "CONTAINER_APP_NAME"} {
		if r.Text(name) != "" {
			return false
		}
	}
	return strings.EqualFold(r.Text("AZURE_FUNCTIONS_ENVIRONMENT"), "Development") && strings.EqualFold(r.Text("FUNCTIONS_CORETOOLS_ENVIRONMENT"), "true")
}
