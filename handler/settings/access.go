package settings

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/handler/quota"
)

const (
	rolesSetting      = "ROUNDHOUSE_ROLES"
	homeTenantSetting = "ROUNDHOUSE_HOME_TENANT"
	auditSetting      = "ROUNDHOUSE_AUDIT_RETENTION"
	limitSetting      = "ROUNDHOUSE_CALLER_LIMIT"
	// defaultAuditKeep is how long the audit log is kept, leastAuditKeep the least that it can be.
	defaultAuditKeep = 400 * 24 * time.Hour
	leastAuditKeep   = 31 * 24 * time.Hour
)

// Access holds the access policy, and the retention of the audit log.
type Access struct {
	access.Control
	// AuditKeep is the retention of the audit log (ROUNDHOUSE_AUDIT_RETENTION, a Go duration; 400 days unless set).
	AuditKeep time.Duration
	// CallerLimit is the number of storage transactions per second of one caller (ROUNDHOUSE_CALLER_LIMIT); 0 for no
	// limit, as on a developer's machine.
	CallerLimit int
}

// accessFrom reads ROUNDHOUSE_ROLES, ROUNDHOUSE_HOME_TENANT, ROUNDHOUSE_AUDIT_RETENTION, ROUNDHOUSE_CALLER_LIMIT,
// and the settings of the platform and the local host.
func accessFrom(r *Reader) (Access, error) {
	var s Access
	var errs [5]error
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
	s.CallerLimit, errs[4] = callerLimit(r, s.Development)
	return s, errors.Join(errs[:]...)
}

// mostTransactions is the limit of a storage account.
const mostTransactions = 20_000

func callerLimit(r *Reader, development bool) (int, error) {
	text := r.Text(limitSetting)
	switch {
	case text == "" && development:
		return 0, nil
	case text == "":
		return quota.DefaultPerSecond, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > mostTransactions {
		return 0, fmt.Errorf("%s is %.64q: set a number from 1 to %d, such as %d, or 0 for no limit", limitSetting, text, mostTransactions, quota.DefaultPerSecond)
	}
	return n, nil
}

// developersMachine reports whether the host is the local host or that of Core Tools, which identify themselves,
// without a sign of the platform. CONTAINER_NAME, which one plan has besides WEBSITE_SITE_NAME, is not a sign: other
// containers, such as development containers, have it, too.
func developersMachine(r *Reader) bool {
	for _, name := range []string{"WEBSITE_INSTANCE_ID", "WEBSITE_SITE_NAME", "CONTAINER_APP_NAME"} {
		if r.Text(name) != "" {
			return false
		}
	}
	return strings.EqualFold(r.Text("AZURE_FUNCTIONS_ENVIRONMENT"), "Development") && strings.EqualFold(r.Text("FUNCTIONS_CORETOOLS_ENVIRONMENT"), "true")
}
