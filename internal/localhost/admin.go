package localhost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// adminRoutes returns the part of the real host's admin endpoints that development uses.
func (h *Host) adminRoutes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /admin/host/status", h.adminStatus)
	mux.HandleFunc(adminPing, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "no-store,no-cache")
		w.Header().Set("Pragma", "no-cache")
	})
	mux.HandleFunc("POST /admin/host/drain", h.adminDrain)
	mux.HandleFunc("GET /admin/host/drain/status", h.adminDrainStatus)
	mux.HandleFunc("GET /admin/functions", h.adminFunctions)
	mux.HandleFunc("GET /admin/functions/{name}", h.adminFunction)
	mux.HandleFunc("GET /admin/functions/{name}/status", h.adminFunctionStatus)
	mux.HandleFunc("POST /admin/functions/{name}", h.adminInvoke)
	return mux
}

// adminPing is the only admin endpoint without a key.
const adminPing = "/admin/host/ping"

// serveAdmin serves the paths below /admin. Unknown paths are reported without a key, as on the real host.
func (h *Host) serveAdmin(w http.ResponseWriter, r *http.Request, path string) {
	r.URL.Path, r.URL.RawPath = path, ""
	switch _, pattern := h.admin.Handler(r); {
	case pattern == "":
		w.WriteHeader(http.StatusNotFound)
	case pattern != adminPing && !h.authorized(r, authAdmin):
		unauthorized(w)
	default:
		h.admin.ServeHTTP(w, r)
	}
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	text := encode(value)
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	_, _ = w.Write(text) // only a disconnected client makes this fail
}

// hostView is the admin endpoints' view of the host.
type hostView struct {
	ID              string `json:"id"`
	State           string `json:"state"`
	Version         string `json:"version"`
	VersionDetails  string `json:"versionDetails"`
	PlatformVersion string `json:"platformVersion"`
	InstanceID      string `json:"instanceId"`
	ComputerName    string `json:"computerName"`
	ProcessUptime   int64  `json:"processUptime"` // milliseconds
	ContentEditing  string `json:"functionAppContentEditingState"`
}

func (h *Host) adminStatus(w http.ResponseWriter, _ *http.Request) {
	state := "Initialized"
	select {
	case <-h.ready:
		state = "Running" // even when the handler exited with code 0, as on the real host
	default:
	}
	writeJSON(w, http.StatusOK, hostView{ID: h.id, State: state, Version: hostVersion, VersionDetails: hostVersion,
		ProcessUptime: h.config.Now().Sub(h.begun).Milliseconds(), ContentEditing: "Unknown"})
}

// adminDrain stops the listeners and timers; running invocations continue.
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
	writeJSON(w, http.StatusOK, struct {
		State       string `json:"state"`
		Invocations int64  `json:"outstandingInvocations"`
		Retries     int    `json:"outstandingRetries"`
	}{State: state, Invocations: running})
}

// functionView is the admin endpoints' view of a function.
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

// named finds the function in a path, or answers 404.
func (h *Host) named(w http.ResponseWriter, r *http.Request) *function {
	for _, f := range h.functions {
		if strings.EqualFold(f.name, r.PathValue("name")) {
			return f
		}
	}
	w.WriteHeader(http.StatusNotFound)
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
			status["errors"] = []string{f.complaint()}
		}
		writeJSON(w, http.StatusOK, status)
	}
}

// adminInvoke starts a function with {"input":"text"} and does not wait for it. The log has its failures.
func (h *Host) adminInvoke(w http.ResponseWriter, r *http.Request) {
	f := h.named(w, r)
	if f == nil {
		return
	}
	e, status, err := h.handed(w, r, f)
	if err != nil {
		h.config.Log.Error("function cannot be invoked by hand", "function", f.name, "error", err)
		w.WriteHeader(status)
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

// handed reads the input for a function. The error comes with the status that the real host answers.
func (h *Host) handed(w http.ResponseWriter, r *http.Request, f *function) (e envelope, status int, err error) {
	if mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || mediaType != "application/json" {
		return envelope{}, http.StatusUnsupportedMediaType, errors.New("the content type has to be application/json")
	}
	var body struct{ Input any }
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest))
	decoder.UseNumber()
	if err := decoder.Decode(&body); err != nil {
		return envelope{}, http.StatusBadRequest, errors.New(`the body has to be {"input":"text"}`)
	}
	if !f.runnable() {
		return envelope{}, http.StatusNotFound, errors.New("the function is disabled or has errors")
	}
	if f.trigger.Type == httpTrigger {
		return envelope{}, http.StatusAccepted, errors.New("an HTTP function is invoked by its own route")
	}
	var input string
	if body.Input != nil {
		input = fmt.Sprint(body.Input)
	}
	if e, err = h.handEnvelope(r.Context(), f, input); err != nil {
		return envelope{}, http.StatusBadRequest, err
	}
	return e, http.StatusAccepted, nil
}

// handEnvelope returns the envelope of a manual invocation: for a queue function the input is the message, which no
// queue delivered.
func (h *Host) handEnvelope(ctx context.Context, f *function, input string) (envelope, error) {
	now := h.config.Now()
	switch f.trigger.Type {
	case queueTrigger:
		return queueEnvelope(f, queueDelivery{inserted: now, body: []byte(input)}, now)
	case timerTrigger:
		return h.handTimer(ctx, f, input), nil
	case manualTrigger:
		return manualEnvelope(f, input, now)
	default:
		return envelope{}, fmt.Errorf("function %s cannot be invoked by hand", f.name)
	}
}

func (h *Host) handTimer(ctx context.Context, f *function, input string) envelope {
	t, now := h.timer(f), h.config.Now()
	var status *timerStatus
	if t.status != nil {
		status = h.statusOf(ctx, t)
	}
	e := timerEnvelope(f, t.schedule, status, false, now)
	if input != "" {
		e.meta(f.trigger.Name, nested(input))
	}
	return e
}

// statusOf returns the stored state of a timer, or its state at the start.
func (h *Host) statusOf(ctx context.Context, t *timer) *timerStatus {
	status, err := t.status.load(ctx)
	if err != nil {
		h.config.Log.Error("timer is invoked without its status", "function", t.function, "error", err)
	}
	if status == nil {
		status = &timerStatus{Next: dateTime{t.schedule.next(t.time())}}
	}
	return status
}

// complaint returns the error of a function that does not run: in the real host's words where it has some.
func (f *function) complaint() string {
	if errors.Is(f.err, errNotRegistered) {
		return "The binding type(s) 'queueTrigger' are not registered. Please ensure the type is correct and the binding extension is installed."
	}
	return f.err.Error()
}
