package handler_test

import (
	"net/http"
	"testing"
)

// Work under the correlation id of other work is refused at the doors over HTTP, before it is anything, and the same work again
// is the same run; what comes through a queue is a dead letter instead, for there is nobody to tell.
func TestOtherWorkUnderACorrelationID(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	start := func(input string) (string, string) {
		return "/api/orchestrations", `{"orchestrator":"shop","correlationId":"red-waits","input":` + input + `}`
	}
	other := func(input string) (string, string) {
		return "/api/runtime/webhooks/durabletask/orchestrators/shop/shop-red-waits", input
	}
	path, body := start(`{"instanceId":"instance-red","tenantId":"` + tenantOf("red") + `","input":{}}`)
	if status, answer := m.Do(http.MethodPost, path, body, m.home.Sign); status != http.StatusAccepted {
		t.Errorf("the same work: %d %s", status, answer)
	}
	for name, door := range map[string]func(string) (string, string){"API": start, "Durable API": other} {
		for what, input := range map[string]string{
			"another instance": `{"instanceId":"instance-blue","input":{}}`,
			"another input":    `{"instanceId":"instance-red","tenantId":"` + tenantOf("red") + `","input":{"fail":true}}`,
		} {
			path, body := door(input)
			if status, answer := m.Do(http.MethodPost, path, body, m.home.Sign); status != http.StatusConflict {
				t.Errorf("%s, %s: %d %s", name, what, status, answer)
			}
		}
	}
}
