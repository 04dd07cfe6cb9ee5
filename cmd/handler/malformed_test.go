package main

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/provisioning"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/outbox"
)

// These secrets are in values of settings, and must be in no text.
const (
	secretText   = "S3cretTail"
	secretBase64 = "UzNjcmV0VGFpbFMzY3JldFRhaWxTM2NyZXRUYWls" // secretText three times
)

// remedy matches texts that name the remedy or the accepted values.
var remedy = regexp.MustCompile(`\b(set|use|write|copy|describes|give|leave|add|remove|name|store|want|known|needs|has to be|have to be|must|may|not set|is missing|is not one of|has six fields|are needed|is no number of|there are)\b`)

// malformed has values of one setting, and other required settings. Accepted values are normalised, as
// docs/settings.md describes.
type malformed struct {
	setting           string
	in                deployment
	with              []string
	accepted, refused []string
}

func malformedSettings() []malformed {
	const account = "DefaultEndpointsProtocol=https;AccountName=abcd;AccountKey=" + secretBase64 + ";EndpointSuffix=core.windows.net"
	const tenant = "11111111-2222-3333-4444-555555555555"
	schedule := func(cron string) string { return fmt.Sprintf(`{"hmac":{"cron":%q}}`, cron) }
	poller := func(cron string) string {
		return fmt.Sprintf(`{"orders":{"schedule":%q,"connection":{"setting":"ORDERS_DB"},"source":{"dialect":"postgres","sourceId":"shop","table":"orders","cursor":"id","keys":["id"]},"deliver":{"outbox":{"eventType":"e","tenantId":"t"}}}}`, cron)
	}
	noCron := []string{"0 0 25 * * *", "0 60 0 * * *", "60 0 0 * * *", "0 0 0 32 * *", "0 0 0 0 * *", "0 0 0 * 13 *", "0 0 0 * 0 *", "0 0 0 * * 7", "0 0 0 * * -1", "0 0 0 30 2 *", "0 0 0 31 4,6 *", "0 0 * * *", "* * * *", "@daily", "@every 5m",
		"0 0 0 * * *  *", "0 0 0 L * *", "0 0 0 * * MON#1", "0 0 0 15W * *", "0 0 0 ? * *", "CRON_TZ=UTC 0 0 0 * * *", "0 a 0 * * *", "0 0,, 0 * * *", "0 1- 0 * * *", "0 */x 0 * * *", "0 */-1 0 * * *", "0 99999999999999999999 0 * * *",
		"0 0 0 * FOO *", "every day", "00:00:00", "0;0;0;*;*;*", "0 0 0 * * * # comment"}
	return []malformed{
		{setting: "AzureWebJobsStorage", accepted: []string{account, " " + account + "\n", account + ";", "AccountName=abcd;AccountKey=" + secretBase64, "accountname=abcd;ACCOUNTKEY=" + secretBase64,
			strings.Replace(account, "EndpointSuffix=core", "EndpointSuffix=.core", 1), "\ufeff" + account},
			refused: []string{"AccountName=abcd", "AccountKey=" + secretBase64, strings.Replace(account, "abcd", "AB", 1), strings.Replace(account, "abcd", "a b", 1), strings.Replace(account, "abcd", "", 1),
				strings.Replace(account, secretBase64, "", 1), strings.Replace(account, secretBase64, secretText+"!", 1), strings.Replace(account, "https", "ftp", 1), strings.Replace(account, ";", ",", -1),
				strings.Replace(account, "core.windows.net", "core windows net", 1), strings.Replace(account, "core.windows.net", "x/"+secretText, 1), account + ";AccountKey=" + secretBase64 + "x", account + ";" + secretText, account + ";Secret=" + secretText,
				"'" + account + "'", `"` + account + `"`, account + "\nAccountName=x", account + ";BlobEndpoint=https://abcd.blob.core.windows.net/container", account + ";BlobEndpoint=http://x.example", account + ";TableEndpoint=//x",
				account + ";QueueEndpoint=https://u:" + secretText + "@x.example", "BlobEndpoint=https://x.example;SharedAccessSignature=sig=" + secretText, "UseDevelopmentStorage=yes", "UseDevelopmentStorage=true;AccountKey=" + secretBase64,
				"https://abcd.blob.core.windows.net?sig=" + secretText, secretText, "AzureWebJobsStorage=" + account, "@Microsoft.KeyVault(SecretUri=https://v.vault.azure.net/secrets/x)"}},
		{setting: "AzureWebJobsStorage__accountName", with: []string{"AzureWebJobsStorage", "", "ROUNDHOUSE_KEY_VAULT_URL", "https://v.vault.azure.net", "ROUNDHOUSE_SPN_TENANT", tenant, "ROUNDHOUSE_OUTBOX", `{"destinations":{"log":{"log":{}}},"routes":[{"eventType":"*","destination":"log"}]}`, "AzureWebJobsStorage__credential", "managedidentity"},
			accepted: []string{"abcd", " abcd\n"}, refused: []string{"ABCD", "ab", "a_bcd", "https://abcd.blob.core.windows.net", "abcd.blob.core.windows.net", strings.Repeat("a", 25), "abcd;AccountKey=" + secretBase64}},
		{setting: "AzureWebJobsStorage__clientId", with: []string{"AzureWebJobsStorage", "", "AzureWebJobsStorage__accountName", "abcd", "ROUNDHOUSE_KEY_VAULT_URL", "https://v.vault.azure.net", "ROUNDHOUSE_SPN_TENANT", tenant, "ROUNDHOUSE_OUTBOX", `{"destinations":{"log":{"log":{}}},"routes":[{"eventType":"*","destination":"log"}]}`},
			accepted: []string{tenant, strings.ToUpper("abcdef01-2222-3333-4444-555555555555"), "{" + tenant + "}", strings.ReplaceAll(tenant, "-", "")}, refused: []string{"me", tenant + "0", "00000000-0000-0000-0000-000000000000", "/subscriptions/x", tenant[:35], tenant + " " + tenant}},
		{setting: "ROUNDHOUSE_KEY_VAULT_URL", accepted: []string{"https://v.vault.azure.net/"}, refused: []string{"v", "http://v.vault.azure.net", "https://", "https://v.vault.azure.net/secrets/x", "https://u:" + secretText + "@v.vault.azure.net", "https://v.vault.azure.net?x=" + secretText, "v.vault.azure.net", "https://v.vault.azure.net#x"}},
		{setting: "ROUNDHOUSE_ALERTS_KEY", accepted: []string{secretText + secretText, " " + secretText + secretText + "\n"}, refused: []string{secretText, secretText + " " + secretText, secretText + "\t" + secretText, secretText + secretText + "ü", secretText + "\n" + secretText}},
		{setting: "ROUNDHOUSE_MANAGED_APP_SIGNATURE", accepted: []string{secretText + secretText}, refused: []string{secretText, secretText + " " + secretText, secretText + secretText + "\u00a0x"}},
		{setting: "ROUNDHOUSE_HOME_TENANT", accepted: []string{tenant, strings.ToUpper("abcdef01-2222-3333-4444-555555555555"), "(" + tenant + ")"}, refused: []string{"contoso.onmicrosoft.com", "00000000-0000-0000-0000-000000000000", tenant[1:], "common"}},
		{setting: "ROUNDHOUSE_SPN_TENANT", accepted: []string{tenant}, refused: []string{"a b", "a/b", "https://login.microsoftonline.com/" + tenant}},
		{setting: "ROUNDHOUSE_MARKETPLACE_APP_ID", with: []string{"ROUNDHOUSE_MARKETPLACE_TENANT", tenant}, accepted: []string{tenant, "api://" + tenant, strings.ToUpper("api://abcdef01-2222-3333-4444-555555555555")}, refused: []string{"api://contoso.com/x", "app", "00000000-0000-0000-0000-000000000000", tenant + "/"}},
		{setting: "ROUNDHOUSE_INSTANCE_ID", in: managedApp, accepted: []string{"instance-1", "/subscriptions/1/x"}, refused: []string{strings.Repeat("i", 513), "a\x00b", "\xff"}},
		{setting: "ROUNDHOUSE_PAYLOAD_KEY", refused: []string{"https://v.vault.azure.net/keys/x", "a_b", "a b", strings.Repeat("k", 128), "x/1"}},
		{setting: "ROUNDHOUSE_SCHEDULES", refused: append([]string{"x", "[]", `{"gone":{"cron":"0 0 0 * * *"}}`, `{"hmac":{"gone":"0 0 0 * * *"}}`, `{"hmac":{"cron":"off","spread":"169h"}}`, `{"hmac":"off"}`, schedule("* * * * * *")}, each(noCron, schedule)...), accepted: []string{schedule("0 0 0 * * *"), schedule("0 0 9 * * MON-FRI"), schedule(" 0 0 9 * * 0 ")}},
		{setting: "ROUNDHOUSE_POLLERS", refused: append([]string{"x", "[]", "{", `{"orders":null}`, `{"orders":{}}`, `{"Orders!":` + poller("0 0 0 * * *")[len(`{"orders":`):], strings.Replace(poller("0 0 0 * * *"), "ORDERS_DB", "postgres://app:"+secretText+"@db", 1),
			strings.Replace(poller("0 0 0 * * *"), `"table"`, `"dsn":"`+secretText+`","table"`, 1), strings.Replace(poller("0 0 0 * * *"), `"setting":"ORDERS_DB"`, `"secret":"a/b"`, 1)}, each(noCron, poller)...), accepted: []string{poller("*/10 * * * * *"), poller("0 0 9 * * MON-FRI")}},
		{setting: "ROUNDHOUSE_INVOCATION_BUDGET", refused: []string{"8", "8 minutes", "-1m", "0", "9h"}, accepted: []string{"5m", " 5m "}},
		{setting: "ROUNDHOUSE_ORCHESTRATION_RETENTION", refused: []string{"30d", "0", "-1h", "59m", "1000000000h"}},
		{setting: "ROUNDHOUSE_HEALTH_RUN_AGE", refused: []string{"90d", "0", "x"}, accepted: []string{"-1s", "2160h"}},
		{setting: "ROUNDHOUSE_LOG_LEVEL", refused: []string{"verbose", "1", "warn,info"}, accepted: []string{"WARN", " debug "}},
		{setting: "ROUNDHOUSE_PUBLIC_URL", refused: []string{"app.example.com", "ftp://app.example.com", "https://", "https://u:" + secretText + "@app.example.com", "https://app.example.com?code=" + secretText}},
		{setting: "ROUNDHOUSE_OUTBOX", refused: []string{"x", "{}", `{"destinations":{"a":{"http":{"url":"https://u:` + secretText + `@x.example"}}},"routes":[{"eventType":"*","destination":"b"}]}`, `{"destinations":{"a":{"http":{"url":"ftp://x.example/` + secretText + `"}}},"routes":[{"eventType":"*","destination":"a"}]}`,
			`{"destinations":{"a":{"log":{},"queue":{"queue":"q"}}},"routes":[{"eventType":"*","destination":"a"}]}`, `{"destinations":{"a":{"queue":{"queue":"A_B"}}},"routes":[{"eventType":"*","destination":"a"}]}`,
			`{"destinations":{"a":{"http":{"url":"https://x.example/","signingKeys":[{"id":"k","secret":"a/b"}]}}},"routes":[{"eventType":"*","destination":"a"}]}`, `{"destinations":{"a":{"log":{}}},"routes":[{"eventType":"*a*","destination":"a"}]}`}},
	}
}

func each(values []string, make func(string) string) (made []string) {
	for _, v := range values {
		made = append(made, make(v))
	}
	return made
}

// A malformed setting is normalised, or refused with an error that has its name and the remedy. No text has a
// secret.
func TestMalformedSettings(t *testing.T) {
	t.Parallel()
	tried := 0
	for _, m := range malformedSettings() {
		start := func(value string) error {
			tried++
			env := emulator.With(m.with...).With(m.setting, value)
			if m.in != "" {
				env = env.With(contextSetting, string(m.in))
			}
			h, err := handler.New(handler.App{Engines: engines}, handler.Config{Lookup: env.Lookup})
			if err == nil {
				h.Close()
			}
			return err
		}
		for _, value := range m.accepted {
			if err := start(value); err != nil && strings.Contains(err.Error(), m.setting) {
				t.Errorf("%s=%q: %v", m.setting, value, err)
			}
		}
		for _, value := range m.refused {
			err := start(value)
			switch {
			case err == nil || !strings.Contains(err.Error(), m.setting):
				t.Errorf("%s=%q is not refused by its name: %v", m.setting, value, err)
			case !remedy.MatchString(err.Error()):
				t.Errorf("%s=%q: no remedy in %v", m.setting, value, err)
			case strings.Contains(err.Error(), secretText), strings.Contains(err.Error(), secretBase64[:16]):
				t.Errorf("%s=%q: the secret is in %v", m.setting, value, err)
			}
		}
	}
	if tried < 200 {
		t.Errorf("%d settings", tried)
	}
}

// A malformed notice is no message, or an error with the wrong member; another spelling is the same notice. No text
// has the sender's secrets.
func TestMalformedNotices(t *testing.T) {
	t.Parallel()
	const id = "11111111-2222-3333-4444-555555555555"
	const application = "/subscriptions/" + id + "/resourceGroups/g/providers/Microsoft.Solutions/applications/a"
	webhook := func(members string) string {
		return `{"id":"op-1","action":"Renew","timeStamp":"2026-11-21T10:00:00Z",` + members + `}`
	}
	notification := func(members string) string {
		return `{"eventType":"PUT","provisioningState":"Succeeded",` + members + `}`
	}
	for _, tt := range []struct {
		adapt             func([]byte) (engine.Message, bool, error)
		accepted, refused []string
	}{
		{provisioning.AdaptWebhook,
			[]string{webhook(`"subscriptionId":"` + id + `"`), webhook(`"subscriptionId":" {` + id + `} "`), webhook(`"subscriptionId":"urn:uuid:` + id + `"`), webhook(`"subscriptionId":"` + strings.ReplaceAll(id, "-", "") + `"`),
				webhook(`"subscriptionId":"` + id + `","timeStamp":"2018-12-01T00:00:00"`), webhook(`"subscriptionId":"` + id + `","timeStamp":"yesterday"`), webhook(`"subscriptionId":"` + id + `","timeStamp":7`), webhook(`"subscriptionId":"` + id + `","timeStamp":null`),
				webhook(`"subscriptionId":"` + id + `","id":7`), webhook(`"subscriptionId":"` + id + `","purchaseToken":"` + secretText + `"`), strings.Replace(webhook(`"subscriptionId":"`+id+`"`), `"action"`, `"operationType"`, 1)},
			[]string{``, `{`, `null`, `[]`, `"Renew"`, `{}`, webhook(`"subscriptionId":""`), webhook(`"subscriptionId":"` + secretText + `"`), webhook(`"subscriptionId":"` + id + `0"`), webhook(`"subscriptionId":7`), webhook(`"subscriptionId":{"id":"` + id + `"}`),
				strings.Replace(webhook(`"subscriptionId":"`+id+`"`), "Renew", "Transfer", 1), strings.Replace(webhook(`"subscriptionId":"`+id+`"`), "Renew", "", 1),
				notification(`"applicationId":"` + application + `","eventTime":"2026-11-21T10:00:00Z"`), webhook(`"subscriptionId":"` + id + `","applicationId":"` + application + `","eventType":"PUT"`), "\xff\xfe" + webhook(`"subscriptionId":"`+id+`"`)}},
		{provisioning.AdaptNotification,
			[]string{notification(`"applicationId":"` + application + `","eventTime":"2026-11-21T10:00:00Z"`), notification(`"applicationId":"` + strings.ToUpper(application) + `","eventTime":"2026-11-21T10:00:00"`), notification(`"applicationId":"` + application[1:] + `","eventTime":"2026-11-21T10:00:00+02:00"`)},
			[]string{notification(`"applicationId":"` + application + `"`), notification(`"applicationId":"` + application + `","eventTime":"soon"`), notification(`"applicationId":"` + application + `","eventTime":""`), notification(`"applicationId":"","eventTime":"2026-11-21T10:00:00Z"`),
				notification(`"applicationId":"/subscriptions/x","eventTime":"2026-11-21T10:00:00Z"`), notification(`"applicationId":"` + application + `/../x","eventTime":"2026-11-21T10:00:00Z"`), notification(`"applicationId":"` + application + `?sig=` + secretText + `","eventTime":"2026-11-21T10:00:00Z"`),
				notification(`"applicationId":"https://x.example` + application + `","eventTime":"2026-11-21T10:00:00Z"`), notification(`"applicationId":["` + application + `"],"eventTime":"2026-11-21T10:00:00Z"`), strings.Replace(notification(`"applicationId":"`+application+`","eventTime":"2026-11-21T10:00:00Z"`), "Succeeded", "Maybe", 1),
				strings.Replace(notification(`"applicationId":"`+application+`","eventTime":"2026-11-21T10:00:00Z"`), "PUT", "PATCHY", 1)}},
	} {
		same := map[string]bool{}
		for _, body := range tt.accepted {
			m, ok, err := tt.adapt([]byte(body))
			if !ok || err != nil || m.InstanceID == "" {
				t.Errorf("%q is not taken: %v, %v", body, ok, err)
			}
			same[m.InstanceID] = true
		}
		if len(same) != 1 {
			t.Errorf("spellings of one instance are %v", same)
		}
		for _, body := range tt.refused {
			_, ok, err := tt.adapt([]byte(body))
			if ok && err == nil {
				t.Errorf("%q is taken", body)
			}
			if err != nil && strings.Contains(err.Error(), secretText) {
				t.Errorf("%q: %v", body, err)
			}
		}
	}
}

// A signing secret is the sender's key, or is refused with the accepted forms. No text has the secret.
func TestMalformedSigningSecrets(t *testing.T) {
	t.Parallel()
	const key = secretBase64
	want, err := outbox.ParseSigningKey("k", "whsec_"+key)
	testenv.OK(t, err)
	url := "whsec_" + strings.NewReplacer("+", "-", "/", "_").Replace(key)
	for _, text := range []string{key, " whsec_" + key, "whsec_" + key + "\n", "\twhsec_" + key + "\r\n", url} {
		if got, err := outbox.ParseSigningKey("k", text); err != nil || !bytes.Equal(got.Secret, want.Secret) {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"", " ", "whsec_", secretText + secretText + secretText, "whsec_" + secretText + "!", "whsec_ " + key, "whsec_" + key[:20] + " " + key[20:], "WHSEC_" + key, "whsec_WHSEC_" + key, "whsec_whsk_" + key, "whsec_whsec_" + key, `"whsec_` + key + `"`, "'whsec_" + key + "'", "whsec_" + key + "=",
		"whsec_" + key[:8], "whsk_" + key, "whpk_" + key, "v1," + key, "whsec_" + key + ",whsec_" + key, "secret=whsec_" + key, "-----BEGIN KEY-----\n" + key + "\n-----END KEY-----", "whsec:" + key, "https://v.vault.azure.net/secrets/" + secretText} {
		got, err := outbox.ParseSigningKey("k", text)
		switch {
		case err == nil:
			t.Errorf("%q is taken as a key of %d bytes", text, len(got.Secret))
		case strings.Contains(err.Error(), secretText), strings.Contains(err.Error(), key[:16]):
			t.Errorf("%q: the secret is in %v", text, err)
		case !remedy.MatchString(err.Error()):
			t.Errorf("%q: no remedy in %v", text, err)
		}
	}
}
