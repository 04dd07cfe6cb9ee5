package functionapp

import (
	"net/url"
	"strings"
)

// Settings that are read by name.
const (
	storageSetting  = "AzureWebJobsStorage"
	vaultSetting    = "ROUNDHOUSE_KEY_VAULT_URL"
	insightsSetting = "APPLICATIONINSIGHTS_CONNECTION_STRING"
	own             = "ROUNDHOUSE_"
)

// storageForms returns the settings that name a storage account with an identity.
func storageForms() []string {
	return []string{storageSetting + "__accountName", storageSetting + "__blobServiceUri", storageSetting + "__queueServiceUri", storageSetting + "__tableServiceUri"}
}

// Endpoints returns the settings that name the storage account without a secret, for callers with an identity of
// their own: an account in a connection string is named by its account.
func (a App) Endpoints() map[string]string {
	named := map[string]string{}
	for _, name := range storageForms() {
		if value := a.Settings.Is[name]; value != "" {
			named[name] = value
		}
	}
	if len(named) == 0 && a.StorageName() != "" {
		named[storageSetting+"__accountName"] = a.StorageName()
	}
	return named
}

// StorageName returns the name of the app's storage account, "" if the settings do not contain it.
func (a App) StorageName() string {
	for part := range strings.SplitSeq(a.Settings.Is[storageSetting], ";") {
		if name, ok := strings.CutPrefix(strings.TrimSpace(part), "AccountName="); ok {
			return name
		}
	}
	if name := a.Settings.Is[storageForms()[0]]; name != "" {
		return name
	}
	for _, form := range storageForms()[1:] {
		if name := firstLabel(a.Settings.Is[form]); name != "" {
			return name
		}
	}
	return ""
}

// Principal returns the principal of the identity that the app's settings select; "" for none.
func (a App) Principal() string {
	chosen := a.Settings.Is[storageSetting+"__clientId"]
	if chosen == "" {
		return a.System
	}
	for _, user := range a.Users {
		if strings.EqualFold(user.ClientID, chosen) {
			return user.PrincipalID
		}
	}
	return ""
}

func vaultName(address string) string { return firstLabel(address) }

// firstLabel returns the first part of the host name of an address.
func firstLabel(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	label, _, _ := strings.Cut(u.Hostname(), ".")
	return label
}

// insightsKey finds the component's key in a connection string.
func insightsKey(text string) string {
	for part := range strings.SplitSeq(text, ";") {
		if name, value, ok := strings.Cut(part, "="); ok && strings.EqualFold(strings.TrimSpace(name), "InstrumentationKey") {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
