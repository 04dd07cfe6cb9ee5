package registry

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// EngineTablesConfig says where an app keeps history and dead letters, and for how long (standard, section 6). What is left
// out is for the app to say. Of an app's own document it takes effect; those of others are what their apps say.
type EngineTablesConfig struct {
	// StorageAccountName is the account of the tables.
	StorageAccountName string `json:"storageAccountName,omitempty"`
	DlqTableName       string `json:"dlqTableName,omitempty"`
	HistoryTableName   string `json:"historyTableName,omitempty"`
	// RetentionDays is for how long rows are kept that nobody needs any more, MinRetentionDays to MaxRetentionDays.
	RetentionDays int `json:"retentionDays,omitempty"`
	// Retention is the same for single engines, by name.
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

// tableName is what a table may be called; letters of either case are the same to the service.
var tableName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]{2,62}$`)

// accountName is what a storage account may be called.
var accountName = regexp.MustCompile(`^[a-z0-9]{3,24}$`)

// Validate names everything that is wrong, wherever the tables are. The error is ErrInvalid.
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
