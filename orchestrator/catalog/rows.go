package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"time"

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

	columnID           = "Id"
	columnOrchestrator = "Orchestrator"
	columnPass         = "Pass" // mark of the pass that found the row to be correct
)

// entry is what the index knows of an orchestration.
type entry struct {
	id, orchestrator, tag string
	status                orchestrator.Status
	created               time.Time
}

// digest stands for a text in a key of bounded length.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:12])
}

// newest makes later times sort first.
func newest(at time.Time) string {
	return fmt.Sprintf("%019d", math.MaxInt64-max(0, at.UnixMicro()))
}

// place orders orchestrations in all views except the one by id.
func (e entry) place() string { return newest(e.created) + "-" + digest(e.id) }

func idView(id string) string                 { return viewID + tables.EscapeKey(id) }
func orchestratorView(name string) string     { return viewOrchestrator + digest(name) + "-" }
func tagView(tag string) string               { return viewTag + digest(tag) + "-" }
func statusView(s orchestrator.Status) string { return viewStatus + string(s) + "-" }
func bothView(name string, s orchestrator.Status) string {
	return viewBoth + digest(name) + "-" + string(s) + "-"
}

// statusRows are the rows that depend on the status, fixedRows those that do not.
func (e entry) statusRows() []string {
	place := e.place()
	return []string{statusView(e.status) + place, bothView(e.orchestrator, e.status) + place}
}

func (e entry) fixedRows() []string {
	place := e.place()
	rows := []string{idView(e.id), viewAll + place, orchestratorView(e.orchestrator) + place}
	if e.tag != "" {
		rows = append(rows, tagView(e.tag)+place)
	}
	return rows
}

// all returns all rows of the orchestration.
func (e entry) all() []string { return append(e.fixedRows(), e.statusRows()...) }

func key(row string) tables.Key { return tables.Key{Partition: listPartition, Row: row} }

// row returns one of the orchestration's rows.
func (e entry) row(name string) tables.Entity {
	p := map[string]any{columnID: e.id}
	if name == statusView(e.status)+e.place() {
		p[columnOrchestrator] = e.orchestrator // for CountByStatus
	}
	return tables.Entity{Key: key(name), Properties: p}
}
