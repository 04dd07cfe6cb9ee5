package settings

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/vibedata/roundhouse/internal/entraid"
)

// InstanceID is the setting of the managed instance that the app belongs to.
const InstanceID = "ROUNDHOUSE_INSTANCE_ID"

const (
	tenantSetting = "ROUNDHOUSE_TENANT_ID"
	// maxInstanceID and maxTenantID bound the ids, in bytes.
	maxInstanceID = 512
	maxTenantID   = 256
)

// Instance is the managed instance that an app belongs to.
type Instance struct {
	// ID is its id in the registry, "" when it is not set.
	ID string
	// TenantID is whose it is, "" for nobody in particular.
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
