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
	// defaultAuditKeep is the default retention of the audit log, leastAuditKeep the minimum.
	defaultAuditKeep = 400 * 24 * time.Hour
	leastAuditKeep   = 31 * 24 * time.Hour
)

// Access holds the access policy, and the retention of the audit log.
type Access struct {
	access.Control
	// AuditKeep is the retention of the audit log (ROUNDHOUSE_AUDIT_RETENTION, a Go duration; 400 days unless set).
	AuditKeep time.Duration
}

// accessFrom reads ROUNDHOUSE_ROLES, ROUNDHOUSE_HOME_TENANT, ROUNDHOUSE_AUDIT_RETENTION, and the variables of the
// platform and the local host.
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

// developersMachine reports whether the host runs on a developer's machine: the environment names the local host or
// Core Tools, and has no variable of the platform. CONTAINER_NAME, which one plan has next to its WEBSITE_SITE_NAME,
// does not count: other containers have it, too, such as development containers.
func developersMachine(r *Reader) bool {
	for _, name := range []string{"WEBSITE_INSTANCE_ID", "WEBSITE_SITE_NAME", "CONTAINER_APP_NAME"} {
		if r.Text(name) != "" {
			return false
		}
	}
	return strings.EqualFold(r.Text("AZURE_FUNCTIONS_ENVIRONMENT"), "Development") && strings.EqualFold(r.Text("FUNCTIONS_CORETOOLS_ENVIRONMENT"), "true")
}
