package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/internal/tenant"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/tables"
)

const (
	listPartition = "list"

	viewID           = "i-"
	viewAll          = "a-"
	viewOrchestrator = "n-"
	viewStatus       = "s-"
	viewBoth         = "e-"
	viewTag          = "t-"
	viewCorrelation  = "c-"

	// scopePrefix is the prefix of the views of one tenant's orchestrations.
	scopePrefix = "o-"

	columnID           = "Id"
	columnOrchestrator = "Orchestrator"
	columnScope        = "Scope" // in the view by id: the tenant's scope; missing for the platform's
	columnPass         = "Pass"  // mark of the pass that found the row to be correct
)

// entry holds the indexed fields of an orchestration.
type entry struct {
	id, orchestrator, tag, tenant, correlation string
	status                                     orchestrator.Status
	created                                    time.Time
}

// digest converts a text to a key part of bounded length.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:12])
}

// newest makes later times sort first.
func newest(at time.Time) string {
	return fmt.Sprintf("%019d", math.MaxInt64-max(0, at.UnixMicro()))
}

// place returns the sort key of orchestrations in all views except the one by id.
func (e entry) place() string { return newest(e.created) + "-" + digest(e.id) }

func idView(id string) string                 { return viewID + tables.EscapeKey(id) }
func orchestratorView(name string) string     { return viewOrchestrator + digest(name) + "-" }
func correlationView(id string) string        { return viewCorrelation + digest(id) + "-" }
func tagView(tag string) string               { return viewTag + digest(tag) + "-" }
func statusView(s orchestrator.Status) string { return viewStatus + string(s) + "-" }
func bothView(name string, s orchestrator.Status) string {
	return viewBoth + digest(name) + "-" + string(s) + "-"
}

// scopeOf returns the prefix of the views of one tenant's orchestrations; "" is the prefix of the views of all
// tenants, which the platform reads.
func scopeOf(id string) string {
	if id == "" {
		return ""
	}
	return scopePrefix + digest(tenant.Fold(id)) + "-"
}

// scopes returns the scopes in which the orchestration is listed.
func (e entry) scopes() []string {
	if e.tenant == "" {
		return []string{""}
	}
	return []string{"", scopeOf(e.tenant)}
}

// statusRows returns the rows that depend on the status, fixedRows the other ones.
func (e entry) statusRows() (rows []string) {
	place := e.place()
	for _, scope := range e.scopes() {
		rows = append(rows, scope+statusView(e.status)+place, scope+bothView(e.orchestrator, e.status)+place)
	}
	return rows
}

func (e entry) fixedRows() []string {
	place := e.place()
	rows := []string{idView(e.id)} // with the scope in its key, the row of the longest id would be too long
	if e.correlation != "" {
		rows = append(rows, correlationView(e.correlation)+place) // few share one, so a tenant needs no rows of its own
	}
	for _, scope := range e.scopes() {
		rows = append(rows, scope+viewAll+place, scope+orchestratorView(e.orchestrator)+place)
		if e.tag != "" {
			rows = append(rows, scope+tagView(e.tag)+place)
		}
	}
	return rows
}

// all returns all rows of the orchestration.
func (e entry) all() []string { return append(e.fixedRows(), e.statusRows()...) }

func key(row string) tables.Key { return tables.Key{Partition: listPartition, Row: row} }

// row returns one of the orchestration's rows.
func (e entry) row(name string) tables.Entity {
	p := map[string]any{columnID: e.id}
	if strings.HasPrefix(name, viewStatus) {
		p[columnOrchestrator] = e.orchestrator // for CountByStatus
	}
	if e.tenant != "" && strings.HasPrefix(name, viewID) {
		p[columnScope] = scopeOf(e.tenant)
	}
	return tables.Entity{Key: key(name), Properties: p}
}
