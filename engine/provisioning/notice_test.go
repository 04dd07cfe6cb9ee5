package provisioning_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/provisioning"
)

func TestAdapt(t *testing.T) {
	t.Parallel()
	const body = `{"id":"` + operation + `","subscriptionId":"` + subscription + `","action":"Renew"`
	tests := map[string]struct {
		body     string
		ok       bool
		err      string
		instance string
	}{
		"webhook":                   {webhook("ChangePlan"), true, "", subscription},
		"quantity as number":        {body + `,"quantity":7}`, true, "", subscription},
		"quantity as text":          {body + `,"quantity":"7"}`, true, "", subscription},
		"upper-case ids":            {strings.ToUpper(`{"ID":"` + operation + `","SUBSCRIPTIONID":"` + subscription + `","ACTION":"RENEW"}`), true, "", subscription},
		"minimal":                   {`{"subscriptionId":"` + subscription + `","operationType":"Reinstate"}`, true, "", subscription},
		"unknown action":            {`{"subscriptionId":"` + subscription + `","action":"Transfer"}`, true, `the action "Transfer" is not known`, ""},
		"no UUID":                   {`{"subscriptionId":"../admin","action":"Renew"}`, true, "subscriptionId", ""},
		"no UUID as operation":      {`{"id":"seller:` + operation + `:1","subscriptionId":"` + subscription + `","action":"Renew"}`, true, "", subscription},
		"no id as operation":        {`{"id":"x/../y","subscriptionId":"` + subscription + `","action":"Renew"}`, true, "", subscription},
		"numbers as id and time":    {`{"id":7,"timeStamp":1543622400,"subscriptionId":"` + subscription + `","action":"Renew"}`, true, "", subscription},
		"braces around the UUID":    {`{"subscriptionId":" {` + strings.ToUpper(subscription) + `}","action":"Renew"}`, true, "", subscription},
		"application":               {notification("PUT", "Succeeded"), true, "", application},
		"application without time":  {`{"eventType":"PUT","applicationId":"` + application + `","provisioningState":"Succeeded"}`, true, "eventTime", ""},
		"application with dots":     {strings.Replace(notification("PUT", "Succeeded"), "app.1", "..", 1), true, "applicationId", ""},
		"application with a query":  {strings.Replace(notification("PUT", "Succeeded"), "app.1", "app?x=1", 1), true, "applicationId", ""},
		"application with segments": {strings.Replace(notification("PUT", "Succeeded"), "app.1", "app/providers/x", 1), true, "applicationId", ""},
		"unknown state":             {notification("PUT", "Updating"), true, "is not known", ""},
		"envelope":                  {`{"correlationId":"c","engine":"provisioning","input":{}}`, false, "", ""},
		"no JSON":                   {`{`, false, "", ""},
		"no object":                 {`[1]`, false, "", ""},
	}
	for name, tt := range tests {
		m, ok, err := provisioning.Adapt([]byte(tt.body))
		if ok != tt.ok || (err == nil) != (tt.err == "") || err != nil && !(errors.Is(err, provisioning.ErrNotice) && strings.Contains(err.Error(), tt.err)) {
			t.Errorf("%s: %t, %v", name, ok, err)
		}
		if m.InstanceID != tt.instance {
			t.Errorf("%s: instance %q", name, m.InstanceID)
		}
	}
}

// Each entry point accepts only its own kind of notice: they authenticate senders differently.
func TestAdaptOfADoor(t *testing.T) {
	t.Parallel()
	const both = `{"subscriptionId":"` + subscription + `","action":"Renew","eventType":"PUT","provisioningState":"Succeeded","eventTime":"2026-11-21T00:00:00Z","applicationId":"` + application + `"}`
	for name, tt := range map[string]struct {
		body                  string
		webhook, notification bool
	}{
		"webhook":       {webhook("Renew"), true, false},
		"short webhook": {`{"subscriptionId":"` + subscription + `","operationType":"Reinstate"}`, true, false},
		"notification":  {notification("PUT", "Succeeded"), false, true},
		"both":          {both, false, false},
		"envelope":      {`{"correlationId":"c","engine":"provisioning","input":` + webhook("Renew") + `}`, false, false},
		"no JSON":       {`{`, false, false},
	} {
		if m, ok, err := provisioning.AdaptWebhook([]byte(tt.body)); ok != tt.webhook || err != nil || ok && m.InstanceID != subscription {
			t.Errorf("%s as a webhook: %t, %v, %+v", name, ok, err, m)
		}
		if m, ok, err := provisioning.AdaptNotification([]byte(tt.body)); ok != tt.notification || err != nil || ok && m.InstanceID != application {
			t.Errorf("%s as a notification: %t, %v, %+v", name, ok, err, m)
		}
	}
}

// A notice has the same correlation id at each delivery; a notice without identifying fields has none.
func TestCorrelation(t *testing.T) {
	t.Parallel()
	id := func(body string) string {
		m, _, err := provisioning.Adapt([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		return m.CorrelationID
	}
	again := strings.Replace(webhook("Renew"), "InProgress", "Succeeded", 1)
	if a := id(webhook("Renew")); len(a) != 36 || a != id(again) {
		t.Errorf("%s and %s", a, id(again))
	}
	seen := map[string]bool{}
	for _, body := range []string{webhook("Renew"), notification("PUT", "Succeeded"), notification("PUT", "Failed"), notification("DELETE", "Failed"),
		strings.Replace(notification("PUT", "Failed"), "00.5Z", "01Z", 1)} {
		if seen[id(body)] {
			t.Errorf("%s has the id of another", body)
		}
		seen[id(body)] = true
	}
	if a := id(`{"subscriptionId":"` + subscription + `","operationType":"Reinstate"}`); a != "" {
		t.Errorf("the form without identity has %s", a)
	}
}

// Personal data of a notice is dropped.
func TestAdaptLeavesPersonsBehind(t *testing.T) {
	t.Parallel()
	m, _, err := provisioning.Adapt([]byte(webhook("Renew")))
	if err != nil || strings.Contains(string(m.Input), "a@b.test") {
		t.Errorf("%s, %v", m.Input, err)
	}
}

// For any input, the output of Adapt is read back as the same notice.
func FuzzAdapt(f *testing.F) {
	for _, body := range []string{webhook("Renew"), notification("PUT", "Succeeded"), `{}`, `{"subscriptionId":1}`} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		m, ok, err := provisioning.Adapt(body)
		if !ok || err != nil {
			return
		}
		n, err := provisioning.ParseNotice(m.Input)
		if err != nil || n.InstanceID() != m.InstanceID || !json.Valid(m.Input) || len(m.InstanceID) > engine.MaxInstanceIDLength {
			t.Errorf("%q: %+v, %v", body, n, err)
		}
	})
}

func TestDeclines(t *testing.T) {
	t.Parallel()
	change := func(action, plan string) string {
		return `{"id":"` + operation + `","subscriptionId":"` + subscription + `","action":"` + action + `","planId":"` + plan + `"}`
	}
	for body, want := range map[string]bool{change("ChangePlan", "gold"): true, change("changeplan", "gold"): true, change("ChangePlan", "silver"): false,
		change("Renew", "gold"): false, change("ChangePlan", ""): false, `{`: false, `{"planId":"gold"}`: false} {
		if got := provisioning.Declines([]byte(body), []string{"silver"}); got != want || provisioning.Declines([]byte(body), nil) {
			t.Errorf("%s: %t", body, got)
		}
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	_, err := provisioning.New(provisioning.Config{BootstrapDeadline: -1})
	for _, part := range []string{"Marketplace", "Registry", "BootstrapDeadline"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not name %s", err, part)
		}
	}
}
