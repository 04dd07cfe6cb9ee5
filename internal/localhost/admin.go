package localhost

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// adminRoutes is the part of the real host's admin endpoints that development uses.
func (h *Host) adminRoutes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /admin/host/status", h.adminStatus)
	mux.HandleFunc("/admin/host/ping", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	mux.HandleFunc("POST /admin/host/drain", h.adminDrain)
	mux.HandleFunc("GET /admin/host/drain/status", h.adminDrainStatus)
	mux.HandleFunc("GET /admin/functions", h.adminFunctions)
	mux.HandleFunc("GET /admin/functions/{name}", h.adminFunction)
	mux.HandleFunc("GET /admin/functions/{name}/status", h.adminFunctionStatus)
	mux.HandleFunc("POST /admin/functions/{name}", h.adminInvoke)
	return mux
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	// A client that went away is the only thing that can go wrong.
	_ = json.NewEncoder(w).Encode(value)
}

func (h *Host) adminStatus(w http.ResponseWriter, _ *http.Request) {
	state := "Initialized"
	select {
	case <-h.ready:
		state = "Running" // even when the handler exited with code 0, as on the real host
	default:
	}
	writeJSON(w, http.StatusOK, map[string]any{
		"id": h.id, "state": state, "version": hostVersion,
		"processUptime": h.config.Now().Sub(h.begun).Milliseconds(),
	})
}

// adminDrain stops the listeners and timers; invocations that run go on.
func (h *Host) adminDrain(w http.ResponseWriter, _ *http.Request) {
	h.drainOnce.Do(func() { close(h.drain) })
	w.WriteHeader(http.StatusAccepted)
}

func (h *Host) adminDrainStatus(w http.ResponseWriter, _ *http.Request) {
	running, state := h.running.Load(), "Disabled"
	select {
	case <-h.drain:
		state = "Completed"
		if running > 0 {
			state = "InProgress"
		}
	default:
	}
	writeJSON(w, http.StatusOK, map[string]any{"state": state, "outstandingInvocations": running, "outstandingRetries": 0})
}

// functionView is what the admin endpoints show of a function.
type functionView struct {
	Name       string          `json:"name"`
	Href       string          `json:"href"`
	Language   string          `json:"language"`
	Config     json.RawMessage `json:"config"`
	IsDisabled bool            `json:"isDisabled"`
	InvokeURL  string          `json:"invoke_url_template,omitempty"`
	Errors     []string        `json:"errors,omitempty"`
}

func (h *Host) view(f *function) functionView {
	view := functionView{Name: f.name, Href: h.URL() + "/admin/functions/" + f.name, Language: "custom", Config: f.config, IsDisabled: f.disabled}
	if f.err != nil {
		view.Errors = []string{f.err.Error()}
	}
	for _, r := range h.routes {
		if r.function == f {
			view.InvokeURL = h.URL() + "/" + r.template
		}
	}
	return view
}

func (h *Host) adminFunctions(w http.ResponseWriter, _ *http.Request) {
	views := make([]functionView, 0, len(h.functions))
	for _, f := range h.functions {
		views = append(views, h.view(f))
	}
	writeJSON(w, http.StatusOK, views)
}

// named finds the function that a path names, or answers 404.
func (h *Host) named(w http.ResponseWriter, r *http.Request) *function {
	for _, f := range h.functions {
		if strings.EqualFold(f.name, r.PathValue("name")) {
			return f
		}
	}
	http.NotFound(w, r)
	return nil
}

func (h *Host) adminFunction(w http.ResponseWriter, r *http.Request) {
	if f := h.named(w, r); f != nil {
		writeJSON(w, http.StatusOK, h.view(f))
	}
}

func (h *Host) adminFunctionStatus(w http.ResponseWriter, r *http.Request) {
	if f := h.named(w, r); f != nil {
		status := map[string]any{}
		if f.err != nil {
			status["errors"] = []string{f.err.Error()}
		}
		writeJSON(w, http.StatusOK, status)
	}
}

// adminInvoke starts a function with {"input":"text"} and does not wait for it.
func (h *Host) adminInvoke(w http.ResponseWriter, r *http.Request) {
	f := h.named(w, r)
	if f == nil {
		return
	}
	var body struct{ Input string }
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest)).Decode(&body); err != nil {
		http.Error(w, `the body has to be {"input":"text"}`, http.StatusBadRequest)
		return
	}
	if !f.runnable() {
		http.Error(w, "the function is disabled or has errors", http.StatusBadRequest)
		return
	}
	e, err := h.handEnvelope(f, body.Input)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if !h.enter() {
		http.Error(w, "the host is stopping", http.StatusServiceUnavailable)
		return
	}
	go func() {
		defer h.leave()
		h.observed(f, func(id string) error {
			_, err := h.run(context.Background(), f, id, e)
			return err
		})
	}()
	w.WriteHeader(http.StatusAccepted)
}

// handEnvelope is what a function gets that is invoked by hand: for a queue function the input is the message, which
// no queue delivered.
func (h *Host) handEnvelope(f *function, input string) (envelope, error) {
	now := h.config.Now()
	switch f.trigger.Type {
	case queueTrigger:
		return queueEnvelope(f, queueDelivery{inserted: now, body: []byte(input)}, now)
	case timerTrigger:
		return h.handTimer(f, input), nil
	case manualTrigger:
		return manualEnvelope(f, input, now)
	default:
		return envelope{}, fmt.Errorf("function %s is invoked by its own route", f.name)
	}
}

func (h *Host) handTimer(f *function, input string) envelope {
	t, now := h.timer(f), h.config.Now()
	var status *timerStatus
	if t.status != nil {
		status = &timerStatus{Next: dateTime{t.schedule.next(t.time())}}
	}
	e := timerEnvelope(f, t.schedule, status, false, now)
	if input != "" {
		e.meta(f.trigger.Name, nested(input))
	}
	return e
}
