package registry

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// EngineTablesConfig configures the tables and the retention of history and dead letters (standard, section 6). The
// app sets omitted fields. It takes effect in the app's own document; in others it describes their apps.
type EngineTablesConfig struct {
	// StorageAccountName is the account of the tables.
	StorageAccountName string `json:"storageAccountName,omitempty"`
	DlqTableName       string `json:"dlqTableName,omitempty"`
	HistoryTableName   string `json:"historyTableName,omitempty"`
	// RetentionDays is the retention of finished rows, MinRetentionDays to MaxRetentionDays.
	RetentionDays int `json:"retentionDays,omitempty"`
	// Retention is the retention of single engines, by name.
	Retention map[string]int `json:"retention,omitempty"`
}

// The bounds of retention, in days.
const (
	MinRetentionDays = 1
	MaxRetentionDays = 3650
	// maxRetentions bounds the engines of EngineTablesConfig.Retention.
	maxRetentions = 100
)

func tablesConfigFields() []string {
	return []string{"storageAccountName", "dlqTableName", "historyTableName", "retentionDays", "retention"}
}

// tableName matches valid names of tables; the service ignores letter case.
var tableName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]{2,62}$`)

// accountName matches valid names of storage accounts.
var accountName = regexp.MustCompile(`^[a-z0-9]{3,24}$`)

// Validate returns all errors, for any place of the tables. The error is ErrInvalid.
func (c EngineTablesConfig) Validate() error {
	var wrong []string
	complain := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	if c.StorageAccountName != "" && !accountName.MatchString(c.StorageAccountName) {
		complain("storageAccountName %.80q is not the name of a storage account: 3 to 24 small letters and digits", c.StorageAccountName)
	}
	for field, name := range map[string]string{"dlqTableName": c.DlqTableName, "historyTableName": c.HistoryTableName} {
		if name != "" && !tableName.MatchString(name) {
			complain("%s %.80q is not the name of a table: 3 to 63 letters and digits, the first a letter", field, name)
		}
	}
	if c.DlqTableName != "" && strings.EqualFold(c.DlqTableName, c.HistoryTableName) {
		complain("dlqTableName and historyTableName are one table, %s: use two", c.DlqTableName)
	}
	days := func(field string, n int) {
		if n < MinRetentionDays || n > MaxRetentionDays {
			complain("%s is %d: use %d to %d days", field, n, MinRetentionDays, MaxRetentionDays)
		}
	}
	if c.RetentionDays != 0 {
		days("retentionDays", c.RetentionDays)
	}
	if len(c.Retention) > maxRetentions {
		complain("retention names %d engines: use at most %d", len(c.Retention), maxRetentions)
		c.Retention = nil
	}
	for _, engine := range slices.Sorted(maps.Keys(c.Retention)) {
		days(fmt.Sprintf("retention.%.80s", engine), c.Retention[engine])
	}
	if len(wrong) == 0 {
		return nil
	}
	slices.Sort(wrong)
	return fmt.Errorf("engineTablesConfig: %w: %s", ErrInvalid, strings.Join(wrong, "; "))
}
