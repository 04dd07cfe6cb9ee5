package marketplacefake

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
)

// ServeHTTP answers the fulfilment API below /api/saas and the resource manager below /subscriptions.
func (m *Market) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	saas := strings.HasPrefix(r.URL.Path, "/api/saas/")
	token, version := armToken, "2021-07-01"
	if saas {
		token, version = saasToken, "2018-08-31"
	}
	switch {
	case r.Header.Get("Authorization") != "Bearer "+token:
		refuse(w, http.StatusUnauthorized, "Unauthorized", "The token is missing, or for something else.")
		return
	case r.URL.Query().Get("api-version") != version:
		refuse(w, http.StatusBadRequest, "BadArgument", "The api-version is missing or unknown.")
		return
	}
	fault := m.take(r)
	if fault == nil {
		m.dispatch(w, r, saas)
		return
	}
	if fault.Applied {
		m.dispatch(httptest.NewRecorder(), r, saas)
	}
	if fault.Status == 0 {
		// net/http's way to drop a connection without an answer.
		panic(http.ErrAbortHandler)
	}
	refuse(w, fault.Status, "Injected", "A fault.")
}

// take records a request and returns its fault.
func (m *Market) take(r *http.Request) *Fault {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests = append(m.requests, r.Method+" "+r.URL.EscapedPath())
	at := slices.IndexFunc(m.faults, func(f Fault) bool { return f.Method == "" || f.Method == r.Method })
	if at < 0 {
		return nil
	}
	fault := m.faults[at]
	if fault.After > 0 {
		m.faults[at].After--
		return nil
	}
	m.faults = slices.Delete(m.faults, at, at+1)
	return &fault
}

func (m *Market) dispatch(w http.ResponseWriter, r *http.Request, saas bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !saas {
		m.application(w, r)
		return
	}
	parts := strings.Split(strings.TrimPrefix(r.URL.EscapedPath(), "/api/saas/"), "/") // an escaped slash ends no segment
	if parts[0] != "subscriptions" || len(parts) < 2 || m.subscriptions[parts[1]] == nil {
		refuse(w, http.StatusNotFound, "NotFound", "There is no such subscription.")
		return
	}
	s, rest := m.subscriptions[parts[1]], strings.Join(parts[2:], "/")
	switch {
	case r.Method == http.MethodGet && rest == "":
		m.writeSubscription(w, s)
	case r.Method == http.MethodPost && rest == "activate":
		m.activate(w, r, s)
	case r.Method == http.MethodGet && rest == "operations":
		m.pending(w, s)
	case len(parts) == 4 && parts[2] == "operations":
		m.operation(w, r, s, parts[3])
	default:
		refuse(w, http.StatusNotFound, "NotFound", "There is nothing at this path.")
	}
}

func (m *Market) writeSubscription(w http.ResponseWriter, s *Subscription) {
	answer(w, http.StatusOK, map[string]any{"id": s.ID, "publisherId": "contoso", "offerId": "platform", "planId": s.PlanID,
		"quantity": s.Quantity, "name": "a subscription", "beneficiary": map[string]any{"tenantId": s.TenantID},
		"saasSubscriptionStatus": s.Status, "allowedCustomerOperations": []string{"Read", "Update", "Delete"}})
}

func (m *Market) activate(w http.ResponseWriter, r *http.Request, s *Subscription) {
	var body struct {
		PlanID string `json:"planId"`
	}
	if json.NewDecoder(r.Body).Decode(&body) != nil || body.PlanID != s.PlanID || (s.Status != "PendingFulfillmentStart" && s.Status != "Subscribed") {
		refuse(w, http.StatusBadRequest, "BadArgument", "The plan or the status does not allow it.")
		return
	}
	s.Status = "Subscribed"
	w.WriteHeader(http.StatusOK)
}

func (m *Market) pending(w http.ResponseWriter, s *Subscription) {
	list := []any{}
	for _, o := range m.operations {
		if m.settle(o); o.SubscriptionID == s.ID && o.Status == "InProgress" {
			list = append(list, operationDocument(o))
		}
	}
	answer(w, http.StatusOK, map[string]any{"operations": list})
}

func (m *Market) operation(w http.ResponseWriter, r *http.Request, s *Subscription, id string) {
	o := m.operations[id]
	if o == nil || o.SubscriptionID != s.ID {
		refuse(w, http.StatusNotFound, "NotFound", "There is no such operation.")
		return
	}
	m.settle(o)
	if r.Method == http.MethodGet {
		answer(w, http.StatusOK, operationDocument(o))
		return
	}
	var body struct {
		Status string `json:"status"`
	}
	result := map[string]string{"Success": "Succeeded", "Failure": "Failed"}
	switch err := json.NewDecoder(r.Body).Decode(&body); {
	case r.Method != http.MethodPatch || err != nil || result[body.Status] == "":
		refuse(w, http.StatusBadRequest, "BadArgument", "Not an acknowledgement.")
	case o.Status == result[body.Status]:
		w.WriteHeader(http.StatusOK)
	case o.Status != "InProgress":
		refuse(w, http.StatusConflict, "Conflict", "A newer update is fulfilled, or the operation is concluded.")
	default:
		m.conclude(o, result[body.Status])
		w.WriteHeader(http.StatusOK)
	}
}

// operationDocument returns an operation as both the API and the webhook write it.
func operationDocument(o *Operation) map[string]any {
	return map[string]any{"id": o.ID, "activityId": o.ID, "operationRequestSource": "Azure", "subscriptionId": o.SubscriptionID,
		"publisherId": "contoso", "offerId": "platform", "planId": o.PlanID, "quantity": o.Quantity, "action": o.Action,
		"timeStamp": o.At.UTC().Format("2006-01-02T15:04:05.0000000Z"), "status": o.Status}
}

func (m *Market) application(w http.ResponseWriter, r *http.Request) {
	state, ok := m.applications[strings.ToLower(r.URL.Path)]
	if !ok || r.Method != http.MethodGet {
		refuse(w, http.StatusNotFound, "ResourceNotFound", "There is no such resource.")
		return
	}
	answer(w, http.StatusOK, map[string]any{"id": r.URL.Path, "type": "Microsoft.Solutions/applications",
		"properties": map[string]any{"provisioningState": state}})
}

func answer(w http.ResponseWriter, status int, document any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(document) // ignore a client that disconnected
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	answer(w, status, map[string]any{"error": map[string]string{"code": code, "message": message}})
}
