package settings

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/handler/metricpush"
	"github.com/vibedata/roundhouse/handler/trigger"
	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/services/secrets"
)

// Names of settings that other packages use: Storage is the storage account of the app's tables, queues and blobs,
// which is also the host's own, KeyVault the address of the vault, and Pollers the JSON document of the pollers.
const (
	Storage  = "AzureWebJobsStorage"
	KeyVault = "ROUNDHOUSE_KEY_VAULT_URL"
	Pollers  = "ROUNDHOUSE_POLLERS"
)

const (
	payloadKey   = "ROUNDHOUSE_PAYLOAD_KEY"
	purgeSetting = "ROUNDHOUSE_ORCHESTRATION_RETENTION"
	// defaultPurgeAfter is the default retention of ended orchestrations.
	defaultPurgeAfter = 30 * 24 * time.Hour

	blobSetting = "ROUNDHOUSE_BLOB_RETENTION"
	// defaultBlobAge is twice the retention of history and dead letters, leastBlobAge longer than any writer takes to
	// send the message that names its blob.
	defaultBlobAge = 180 * 24 * time.Hour
	leastBlobAge   = 7 * 24 * time.Hour
)

// budgetMargin is the minimum difference between the invocation budget and the host's functionTimeout, so that the
// handler can park its work and answer before the host kills the process.
const budgetMargin = 30 * time.Second

// Settings holds the settings of every app. Engines read their own (Reader).
type Settings struct {
	// Port is the listening port, on the loopback interface (FUNCTIONS_CUSTOMHANDLER_PORT, required; the host sets
	// it). 0 takes any free port.
	Port int
	// Storage is the storage account (AzureWebJobsStorage, a connection string, or AzureWebJobsStorage__accountName
	// and its companions for an identity; required).
	Storage azure.Account
	// KeyVaultURL is the vault of the secrets (ROUNDHOUSE_KEY_VAULT_URL). It may be empty only with the storage
	// emulator, and then means the development secret store.
	KeyVaultURL string
	// PayloadKey is the vault's key for the encryption of payloads (ROUNDHOUSE_PAYLOAD_KEY); "" for no encryption.
	PayloadKey string
	// Budget is the time that an invocation may work before it parks (ROUNDHOUSE_INVOCATION_BUDGET, a Go duration).
	// It ends 30 s or more before functionTimeout. Unless set, it is 8 minutes, or the rest of functionTimeout if
	// that is less.
	Budget time.Duration
	// LogLevel is the minimum level of the log (ROUNDHOUSE_LOG_LEVEL: debug, info, warn or error; info unless set).
	LogLevel slog.Level
	// PublicURL is the address of the app in links (ROUNDHOUSE_PUBLIC_URL); unless set, that of WEBSITE_HOSTNAME, which hosts
	// set, and "" without both.
	PublicURL string
	// Access holds the access policy (ROUNDHOUSE_ROLES, a JSON document, and ROUNDHOUSE_HOME_TENANT), whether the
	// platform authenticates callers (WEBSITE_AUTH_ENABLED, which the platform sets), and the retention of the audit
	// log (ROUNDHOUSE_AUDIT_RETENTION).
	Access Access
	// Outbox configures the outbox (ROUNDHOUSE_OUTBOX and settings with that prefix).
	Outbox Outbox
	// Push is the destination of metrics (OTEL_METRICS_EXPORTER, and its settings).
	Push metricpush.Config
	// Health holds the limits of the health checks (settings with the prefix ROUNDHOUSE_HEALTH_).
	Health Health
	// Retention is the retention of ended orchestrations (ROUNDHOUSE_ORCHESTRATION_RETENTION, a Go duration of an
	// hour or more; 30 days unless set).
	Retention time.Duration
	// Tasks holds the reviewers of dead letters (ROUNDHOUSE_REVIEW_ROLES), and the retention of ended human tasks
	// (ROUNDHOUSE_TASK_RETENTION, as above; 90 days unless set).
	Tasks Tasks
	// BlobAge is the age at which an unreferenced blob is deleted (ROUNDHOUSE_BLOB_RETENTION, a Go duration of a week
	// or more; 180 days unless set).
	BlobAge time.Duration
	// Instance is the app's managed instance (ROUNDHOUSE_INSTANCE_ID, ROUNDHOUSE_TENANT_ID); both are optional.
	Instance Instance
	// Pollers are the pollers of databases (ROUNDHOUSE_POLLERS, a JSON document).
	Pollers []poller.Setting
	// Node configures how the processes of the app detect that one of them has died (settings with the prefix
	// ROUNDHOUSE_NODE_).
	Node Node
	// Direct is the number of its own messages of a queue that the process handles in parallel (ROUNDHOUSE_DIRECT; 64
	// unless set, and 0 leaves all to the host).
	Direct int
	// Tracing is the destination of traces (the standard settings of OpenTelemetry).
	Tracing Tracing
	// Host holds the values of host.json, in FUNCTIONS_APP_ROOT_PATH or else in the current directory.
	Host HostFile
}

// Load reads the settings of every app. The error names every invalid setting, one on each line, with the remedy.
func Load(r *Reader) (Settings, error) {
	var s Settings
	var errs [20]error
	s.Port, errs[0] = portSetting(r)
	s.Storage, errs[1] = azure.FromEnvironment(r.find, Storage)
	r.Development = errs[1] != nil || s.Storage.Emulator // without an account, no other setting is known to be missing
	s.KeyVaultURL, errs[2] = vaultSetting(r, !r.Development)
	s.Host, errs[3] = readHostFile(r.Text("FUNCTIONS_APP_ROOT_PATH"), r)
	if errs[3] == nil {
		s.Budget, errs[4] = budgetSetting(r, s.Host.FunctionTimeout)
	}
	s.LogLevel, errs[5] = levelSetting(r)
	s.Outbox, errs[6] = outboxFrom(r, !r.Development)
	s.Health, errs[7] = healthFrom(r)
	s.Retention, errs[8] = keepSetting(r, purgeSetting, defaultPurgeAfter, time.Hour)
	s.Tasks, errs[9] = tasksFrom(r)
	s.BlobAge, errs[10] = keepSetting(r, blobSetting, defaultBlobAge, leastBlobAge)
	s.Pollers, errs[11] = pollersFrom(r)
	s.PublicURL, errs[12] = publicURLSetting(r)
	s.PayloadKey, errs[13] = keySetting(r)
	s.Access, errs[14] = accessFrom(r)
	s.Instance, errs[15] = instanceFrom(r)
	s.Node, errs[16] = nodeFrom(r)
	s.Direct, errs[17] = directFrom(r)
	s.Tracing, errs[18] = tracingFrom(r)
	s.Push, errs[19] = pushFrom(r)
	return s, errors.Join(errs[:]...)
}

// pollersFrom reads ROUNDHOUSE_POLLERS.
func pollersFrom(r *Reader) ([]poller.Setting, error) {
	settings, err := poller.ParseSettings(r.Text(Pollers))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", Pollers, err)
	}
	return settings, nil
}

func portSetting(r *Reader) (int, error) {
	const name = "FUNCTIONS_CUSTOMHANDLER_PORT"
	text := r.Text(name)
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

func vaultSetting(r *Reader, required bool) (string, error) {
	const name = KeyVault
	r.demand(name)
	text := r.Text(name)
	if text == "" {
		if required {
			return "", fmt.Errorf("%s is not set: set it to the vault's URL, such as https://myvault.vault.azure.net; "+
				"only the storage emulator can do without", name)
		}
		return "", nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		// The value is not repeated: it may be a URL with a credential.
		return "", fmt.Errorf("%s is not a vault's URL: set it to https:// and the vault's host name, such as https://myvault.vault.azure.net", name)
	}
	return "https://" + u.Host, nil
}

func keySetting(r *Reader) (string, error) {
	const name = payloadKey
	text := r.Text(name)
	if text != "" && !secrets.ValidName(text) {
		return "", fmt.Errorf("%s is %.64q: set it to the name of a key of the vault, 1 to %d letters, digits and dashes, without address and version", name, text, secrets.MaxName)
	}
	return text, nil
}

func budgetSetting(r *Reader, functionTimeout time.Duration) (time.Duration, error) {
	const name = "ROUNDHOUSE_INVOCATION_BUDGET"
	most := functionTimeout - budgetMargin
	text := r.Text(name)
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

func levelSetting(r *Reader) (slog.Level, error) {
	const name = "ROUNDHOUSE_LOG_LEVEL"
	level := slog.LevelInfo
	if text := r.Text(name); text != "" {
		if err := level.UnmarshalText([]byte(text)); err != nil {
			return 0, fmt.Errorf("%s is %q: set it to debug, info, warn or error", name, text)
		}
	}
	return level, nil
}

// keepSetting reads a retention: least or longer.
func keepSetting(r *Reader, name string, unset, least time.Duration) (time.Duration, error) {
	text := r.Text(name)
	if text == "" {
		return unset, nil
	}
	keep, err := time.ParseDuration(text)
	if err != nil || keep < least {
		return 0, fmt.Errorf("%s is %.64q: set a Go duration of %v or more, such as %v", name, text, least, unset)
	}
	return keep, nil
}
