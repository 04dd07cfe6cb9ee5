package settings

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/vibedata/roundhouse/internal/entraid"
)

// InstanceID is the setting of the app's managed instance.
const InstanceID = "ROUNDHOUSE_INSTANCE_ID"

const (
	tenantSetting = "ROUNDHOUSE_TENANT_ID"
	// maxInstanceID and maxTenantID bound the ids, in bytes.
	maxInstanceID = 512
	maxTenantID   = 256
)

// Instance is the app's managed instance.
type Instance struct {
	// ID is its id in the registry, "" if unset.
	ID string
	// TenantID is its tenant, "" for none.
	TenantID string
}

func instanceFrom(r *Reader) (Instance, error) {
	i := Instance{ID: r.Text(InstanceID), TenantID: entraid.Normal(r.Text(tenantSetting))}
	return i, errors.Join(idSetting(InstanceID, i.ID, maxInstanceID), idSetting(tenantSetting, i.TenantID, maxTenantID))
}

func idSetting(name, id string, most int) error {
	if len(id) > most || !utf8.ValidString(id) || strings.ContainsFunc(id, unicode.IsControl) {
		return fmt.Errorf("%s has %d bytes, or is no text: set an id of at most %d bytes of UTF-8", name, len(id), most)
	}
	return nil
}
