package settings_test

import (
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/handler/settings"
)

// An engine reads its settings as if they were valid, and the app reports missing and invalid ones, all together.
// Engines get their reader as Platform.Settings.
func ExampleReader() {
	environment := map[string]string{"BACKUP_EVERY": "soon", "BACKUP_DATABASES": "shop, ledger"}
	r := settings.NewReader(func(name string) (string, bool) { value, ok := environment[name]; return value, ok })

	fmt.Println(r.List("BACKUP_DATABASES"))
	fmt.Println(r.Duration("BACKUP_EVERY", 24*time.Hour, time.Hour))
	r.Required("BACKUP_ACCOUNT", "the name of the account that keeps backups")
	fmt.Println(r.Err())
	// Output:
	// [shop ledger]
	// 24h0m0s
	// BACKUP_EVERY: set a Go duration of 1h0m0s or more, such as 24h
	// BACKUP_ACCOUNT: it is not set: set it to the name of the account that keeps backups
}
