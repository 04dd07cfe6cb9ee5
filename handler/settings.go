package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/handler/trigger"
	"github.com/vibedata/roundhouse/poller"
)

// lookupFunc looks a variable up, as os.LookupEnv does.
type lookupFunc func(name string) (string, bool)

// storageSetting names the storage account of the platform's tables, queues and blobs, which is also the host's own.
const storageSetting = "AzureWebJobsStorage"

// budgetMargin is how far the invocation budget has to stay below the host's functionTimeout, so that the handler can
// park what it runs and answer before the host kills the process.
const budgetMargin = 30 * time.Second

// deployment is the context that the program is deployed in; it selects the engines and functions that are enabled.
type deployment string

const (
	publisher  deployment = "publisher"
	managedApp deployment = "managed-app"
)

// Settings is everything that the environment tells the program.
type Settings struct {
	// Port is where to listen, on the loopback interface (FUNCTIONS_CUSTOMHANDLER_PORT, required; the host sets it).
	// 0 takes any free port.
	Port int
	// Storage is the storage account (AzureWebJobsStorage, a connection string, or AzureWebJobsStorage__accountName
	// and its companions for an identity; required).
	Storage azure.Account
	// Context is the deployment context (ROUNDHOUSE_CONTEXT, "publisher" unless set, or "managed-app").
	Context deployment
	// KeyVaultURL is the vault that secrets live in (ROUNDHOUSE_KEY_VAULT_URL). It may be empty with the storage
	// emulator only, and then means the development secret store.
	KeyVaultURL string
	// Budget is how long an invocation may work before it parks (ROUNDHOUSE_INVOCATION_BUDGET, a Go duration). It ends
	// 30 s or more before functionTimeout. Unless set, it is 8 minutes, or what functionTimeout leaves if that is less.
	Budget time.Duration
	// LogLevel is the least level that is logged (ROUNDHOUSE_LOG_LEVEL: debug, info, warn or error; info unless set).
	LogLevel slog.Level
	// EasyAuth says that the platform authenticates callers and names them in X-MS-CLIENT-PRINCIPAL (WEBSITE_AUTH_ENABLED,
	// which the platform sets; true or false).
	EasyAuth bool
	// Outbox is how events leave (ROUNDHOUSE_OUTBOX and what begins so).
	Outbox outboxSettings
	// Update is what the update engine needs (what begins with ROUNDHOUSE_UPDATE_).
	Update updateSettings
	// TLS is what the tls engine needs.
	TLS tlsSettings
	// Outside is what provisioning, alerts and their intakes need.
	Outside outside
	// HMAC says when the versions of a key change places (what begins with ROUNDHOUSE_HMAC_).
	HMAC hmac.Timing
	// SPN is what the spn engine needs (what begins with ROUNDHOUSE_SPN_).
	SPN spnSettings
	// Health holds the limits of the health checks (what begins with ROUNDHOUSE_HEALTH_).
	Health healthSettings
	// Rotations are what is rotated on schedule (ROUNDHOUSE_ROTATIONS).
	Rotations rotations
	// Retention is how long orchestrations are kept once they have ended (ROUNDHOUSE_ORCHESTRATION_RETENTION, a Go
	// duration of an hour or more; 30 days unless set).
	Retention time.Duration
	// Tasks say who may do what with human tasks (ROUNDHOUSE_HOME_TENANT, ROUNDHOUSE_ADMIN_ROLE, ROUNDHOUSE_REVIEW_ROLES), and how long they are
	// kept once they have ended (ROUNDHOUSE_TASK_RETENTION, as above; 90 days unless set).
	Tasks taskSettings
	// BlobAge is how old a blob is that is deleted when nothing names it (ROUNDHOUSE_BLOB_RETENTION, a Go duration of a week
	// or more; 180 days unless set).
	BlobAge time.Duration
	// Pollers are the pollers of databases (ROUNDHOUSE_POLLERS, a JSON document), and Lookup finds the settings that they name.
	Pollers []poller.Setting
	Lookup  lookupFunc
	// Host is what host.json says, in FUNCTIONS_APP_ROOT_PATH or else in the current directory.
	Host hostFile
}

// LoadSettings reads the settings through lookup. The error names every bad setting, one a line, and what to do.
func LoadSettings(lookup lookupFunc) (Settings, error) {
	var s Settings
	var errs [19]error
	s.Port, errs[0] = portSetting(lookup)
	s.Storage, errs[1] = azure.FromEnvironment(lookup, storageSetting)
	s.Context, errs[2] = contextSetting(lookup)
	s.KeyVaultURL, errs[3] = vaultSetting(lookup, errs[1] == nil && !s.Storage.Emulator)
	s.Host, errs[4] = readHostFile(setting(lookup, "FUNCTIONS_APP_ROOT_PATH"), lookup)
	if errs[4] == nil {
		s.Budget, errs[5] = budgetSetting(lookup, s.Host.FunctionTimeout)
	}
	s.EasyAuth = strings.EqualFold(setting(lookup, "WEBSITE_AUTH_ENABLED"), "true")
	s.LogLevel, errs[6] = levelSetting(lookup)
	s.Outbox, errs[7] = outboxFrom(lookup, errs[1] == nil && !s.Storage.Emulator)
	s.Health, errs[8] = healthFrom(lookup)
	s.SPN, errs[9] = spnFrom(lookup, s.KeyVaultURL, errs[1] == nil && !s.Storage.Emulator && s.Context != managedApp)
	s.TLS, errs[10] = tlsFrom(lookup, s.Storage.Emulator)
	s.Update, errs[12] = updateFrom(lookup, errs[1] == nil && !s.Storage.Emulator && s.Context == managedApp)
	s.Outside, errs[11] = outsideSettings(lookup)
	s.Rotations, errs[13] = rotationsFrom(lookup)
	s.Retention, errs[14] = keepSetting(lookup, purgeSetting, defaultPurgeAfter, time.Hour)
	s.Tasks, errs[15] = tasksFrom(lookup)
	s.HMAC, errs[16] = hmacFrom(lookup)
	s.BlobAge, errs[17] = keepSetting(lookup, blobSetting, defaultBlobAge, leastBlobAge)
	s.Pollers, errs[18] = pollersFrom(lookup)
	s.Lookup = lookup
	if err := errors.Join(errs[:]...); err != nil {
		return Settings{}, err
	}
	return s, nil
}

// setting is a variable's value without surrounding space; an empty variable counts as unset.
func setting(lookup lookupFunc, name string) string {
	value, _ := lookup(name)
	return strings.TrimSpace(value)
}

func portSetting(lookup lookupFunc) (int, error) {
	const name = "FUNCTIONS_CUSTOMHANDLER_PORT"
	text := setting(lookup, name)
	if text == "" {
		return 0, fmt.Errorf("%s is not set: the Azure Functions host sets it when it starts this program; "+
			"to run it, start the host over the staged folder (func start --script-root dist)", name)
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0, fmt.Errorf("%s is %q: set a port number, 0 to 65535", name, text)
	}
	return int(port), nil
}

func contextSetting(lookup lookupFunc) (deployment, error) {
	const name = "ROUNDHOUSE_CONTEXT"
	switch d := deployment(setting(lookup, name)); d {
	case "":
		return publisher, nil
	case publisher, managedApp:
		return d, nil
	default:
		return "", fmt.Errorf("%s is %q: set it to %s or %s", name, d, publisher, managedApp)
	}
}

func vaultSetting(lookup lookupFunc, required bool) (string, error) {
	const name = "ROUNDHOUSE_KEY_VAULT_URL"
	text := setting(lookup, name)
	if text == "" {
		if required {
			return "", fmt.Errorf("%s is not set: set it to the vault's URL, such as https://myvault.vault.azure.net; "+
				"only the storage emulator can do without", name)
		}
		return "", nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		// The value is not repeated: it may be a URL with a credential in it.
		return "", fmt.Errorf("%s is not a vault's URL: set it to https:// and the vault's host name, such as https://myvault.vault.azure.net", name)
	}
	return "https://" + u.Host, nil
}

func budgetSetting(lookup lookupFunc, functionTimeout time.Duration) (time.Duration, error) {
	const name = "ROUNDHOUSE_INVOCATION_BUDGET"
	most := functionTimeout - budgetMargin
	text := setting(lookup, name)
	if text == "" {
		if functionTimeout == unlimited {
			return trigger.DefaultBudget, nil
		}
		if most < time.Second {
			return 0, fmt.Errorf("functionTimeout of host.json is %v, of which %v must remain: raise it to a minute or more", functionTimeout, budgetMargin)
		}
		return min(trigger.DefaultBudget, most), nil
	}
	budget, err := time.ParseDuration(text)
	if err != nil || budget < time.Second {
		return 0, fmt.Errorf("%s is %q: set a Go duration of a second or more, such as 8m", name, text)
	}
	if functionTimeout != unlimited && budget > most {
		return 0, fmt.Errorf("%s is %v, but the host gives up at functionTimeout (%v, host.json): set it to %v or less, or raise functionTimeout",
			name, budget, functionTimeout, most)
	}
	return budget, nil
}

func levelSetting(lookup lookupFunc) (slog.Level, error) {
	const name = "ROUNDHOUSE_LOG_LEVEL"
	level := slog.LevelInfo
	if text := setting(lookup, name); text != "" {
		if err := level.UnmarshalText([]byte(text)); err != nil {
			return 0, fmt.Errorf("%s is %q: set it to debug, info, warn or error", name, text)
		}
	}
	return level, nil
}

// keepSetting reads how long something is kept: least or longer.
func keepSetting(lookup lookupFunc, name string, unset, least time.Duration) (time.Duration, error) {
	text := setting(lookup, name)
	if text == "" {
		return unset, nil
	}
	keep, err := time.ParseDuration(text)
	if err != nil || keep < least {
		return 0, fmt.Errorf("%s is %.64q: set a Go duration of %v or more, such as %v", name, text, least, unset)
	}
	return keep, nil
}
