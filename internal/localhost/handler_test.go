package localhost

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/queues"
)

// playHandler runs a custom handler with good and bad behaviours, by the name of the function.
func playHandler() {
	terminated := make(chan os.Signal, 2)
	signal.Notify(terminated, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		for sig := range terminated {
			fmt.Println("handler heard " + sig.String())
			if os.Getenv("TEST_DEAF") == "" {
				os.Exit(128 + int(syscall.SIGTERM))
			}
		}
	}()
	fmt.Println("handler starts")
	if flag := os.Getenv("TEST_EXIT_AT_START"); flag != "" {
		fmt.Fprintln(os.Stderr, "handler fails at its start")
		code, _ := strconv.Atoi(flag)
		os.Exit(code)
	}
	if os.Getenv("TEST_NEVER_READY") != "" {
		select {}
	}
	address := "127.0.0.1:" + os.Getenv("FUNCTIONS_CUSTOMHANDLER_PORT")
	if err := http.ListenAndServe(address, behaviours()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// behaviours answers invocations.
func behaviours() http.Handler {
	answer := func(status int, contentType, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = nil
			if contentType != "" {
				w.Header().Set("Content-Type", contentType)
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	exit := func(code int) http.HandlerFunc {
		return func(http.ResponseWriter, *http.Request) { os.Exit(code) }
	}
	const js = "application/json"
	mux := http.NewServeMux()
	for path, handler := range map[string]http.HandlerFunc{
		"/{$}":       answer(404, "", ""),
		"/good":      answer(200, "application/json; charset=utf-8", "{}"),
		"/textjson":  answer(201, "text/json", "{}"),
		"/casing":    answer(200, js, `{"outputs":{"Out":"a","out":"b"},"LOGS":["l",1,true,null],"returnvalue":{"x":1},"more":1}`),
		"/empty":     answer(200, js, ""),
		"/nocontent": answer(204, "", ""),
		"/blank":     answer(200, js, " \n"),
		"/null":      answer(200, js, "null"),
		"/text":      answer(200, "text/plain", "{}"),
		"/untyped":   answer(200, "", "{}"),
		"/malformed": answer(200, js, `{"secret":`),
		"/array":     answer(200, js, `[]`),
		"/logs":      answer(200, js, `{"Logs":[{}]}`),
		"/outputs":   answer(200, js, `{"Outputs":[]}`),
		"/fail":      answer(500, js, "{}"),
		"/missing":   answer(404, js, "{}"),
		"/redirect":  func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/good", http.StatusFound) },
		"/away": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://192.0.2.1/", http.StatusFound)
		},
		"/around":      func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/around", http.StatusFound) },
		"/notmodified": answer(304, "", ""),
		"/exit0":       exit(0),
		"/exit200":     exit(200),
		"/exit1":       exit(1),
		"/hang": func(w http.ResponseWriter, r *http.Request) {
			fmt.Println("handler hangs")
			<-r.Context().Done()
			select {}
		},
		"/reset":    func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"/echo":     echo,
		"/echojson": echoJSON,
		"/api/":     web,
		"/API/":     web,
	} {
		mux.HandleFunc(path, handler)
	}
	return mux
}

// received is an invocation as the handler prints it.
type received struct {
	Header http.Header
	Length int64
	Body   json.RawMessage
}

// echo prints the invocation and succeeds.
func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	line, _ := json.Marshal(received{r.Header, r.ContentLength, body})
	fmt.Println(string(line))
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"Logs":["echoed"],"Outputs":{"next":"to the next queue"}}`)
}

// echoJSON answers an http function with its input.
func echoJSON(w http.ResponseWriter, r *http.Request) {
	var e struct{ Data, Metadata map[string]json.RawMessage }
	_ = json.NewDecoder(r.Body).Decode(&e)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"Outputs": map[string]any{"res": map[string]any{
		"statusCode": "201", "headers": map[string]string{"X-Made": "yes", "Content-Type": "application/json"},
		"body": map[string]any{"req": e.Data["req"], "id": e.Metadata["id"], "n": e.Metadata["n"]},
	}}})
}

// web answers forwarded requests.
func web(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Query().Get("do") {
	case "empty":
		w.WriteHeader(http.StatusNoContent)
	case "redirect":
		http.Redirect(w, r, "/elsewhere", http.StatusFound)
	case "reset":
		fmt.Println("handler resets", r.Header.Get("X-Azure-Functions-InvocationId"), r.Header.Get("Traceparent"))
		panic(http.ErrAbortHandler)
	case "refuse":
		fmt.Println("handler refuses")
		w.WriteHeader(http.StatusRequestEntityTooLarge)
	case "hang":
		fmt.Println("handler hangs", r.Header.Get("X-Azure-Functions-InvocationId"))
		<-r.Context().Done()
	case "exit":
		os.Exit(1)
	case "stream":
		control := http.NewResponseController(w)
		_ = control.EnableFullDuplex()
		_ = control.Flush()
		for piece := make([]byte, 100); ; {
			n, err := r.Body.Read(piece)
			_, _ = w.Write(piece[:n])
			_ = control.Flush()
			if err != nil {
				return
			}
		}
	default:
		body, _ := io.ReadAll(r.Body)
		w.Header().Add("Set-Cookie", "a=1")
		w.Header().Add("Set-Cookie", "b=2")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusTeapot)
		_ = json.NewEncoder(w).Encode(map[string]any{"method": r.Method, "uri": r.RequestURI, "host": r.Host, "header": r.Header, "body": string(body)})
	}
}

// lines collects output and lets a test wait for it.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// wait returns the first n lines that contain part.
func (l *lines) wait(t *testing.T, part string, n int) (found []string) {
	t.Helper()
	testenv.Await(t, fmt.Sprintf("%d lines with %q", n, part), func() (text string, ok bool) {
		found, text = nil, l.String()
		for line := range strings.Lines(text) {
			if strings.Contains(line, part) {
				found = append(found, strings.TrimSpace(line))
			}
		}
		return text, len(found) >= n
	})
	return found[:n]
}

// app is a staged script root whose handler is this test binary.
type app struct {
	root        string
	host        map[string]any
	output      *lines
	invocations chan Invocation
	config      Config
}

func newApp(t *testing.T) *app {
	t.Helper()
	executable := testenv.Must(os.Executable())(t)
	a := &app{root: t.TempDir(), output: &lines{}, invocations: make(chan Invocation, 1000)}
	a.host = map[string]any{"version": "2.0", "customHandler": map[string]any{
		"description": map[string]any{"defaultExecutablePath": executable}, "enableForwardingHttpRequest": true}}
	a.write(t, "local.settings.json", map[string]any{"Values": map[string]string{runtimeSetting: "custom", "FROM_FILE": "file", roleVariable: "handler"}})
	a.config = Config{ScriptRoot: a.root, Output: a.output, MinPolling: time.Millisecond, Queues: queues.NewMemory(),
		OnInvocation: func(i Invocation) { a.invocations <- i }}
	return a
}

func (a *app) write(t *testing.T, path string, value any) {
	t.Helper()
	data := testenv.Must(json.Marshal(value))(t)
	full := filepath.Join(a.root, path)
	testenv.OK(t, os.MkdirAll(filepath.Dir(full), 0o755))
	testenv.OK(t, os.WriteFile(full, data, 0o644))
}

// function adds a function with these bindings.
func (a *app) function(t *testing.T, name string, bindings ...map[string]any) {
	t.Helper()
	a.write(t, name+"/function.json", map[string]any{"bindings": bindings})
}

func (a *app) manual(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		a.function(t, name, map[string]any{"type": "manualTrigger", "direction": "in", "name": "msg"})
	}
}

// start runs the host until the test ends; ended receives Run's error.
func (a *app) start(t *testing.T) (host *Host, stop func(), ended <-chan error) {
	t.Helper()
	host, end := a.launch(t)
	testenv.OK(t, host.WaitReady(testenv.Context(t)))
	return host, end.stop, end.ended
}

type launched struct {
	stop  func()
	ended <-chan error
}

func (a *app) launch(t *testing.T) (*Host, launched) {
	t.Helper()
	testenv.Long(t)
	a.write(t, "host.json", a.host)
	host := testenv.Must(New(a.config))(t)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- host.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-host.ended })
	return host, launched{cancel, ended}
}

// next returns the next reported invocation.
func (a *app) next(t *testing.T) Invocation {
	t.Helper()
	return testenv.Receive(t, "an invocation", a.invocations)
}

// invoke starts a function manually and returns its invocation.
func (a *app) invoke(t *testing.T, host *Host, function, input string) Invocation {
	t.Helper()
	body, _ := json.Marshal(map[string]string{"input": input})
	response, _ := request(t, http.MethodPost, host.URL()+"/admin/functions/"+function, bytes.NewReader(body), "Content-Type", "application/json")
	if response.StatusCode != http.StatusAccepted {
		t.Fatalf("invoke %s: status %d", function, response.StatusCode)
	}
	return a.next(t)
}

// given drops the pairs without a value.
func given(pairs ...string) (header []string) {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			header = append(header, pairs[i:i+2]...)
		}
	}
	return header
}

// request sends without following redirects and reads the answer.
func request(t *testing.T, method, url string, body io.Reader, header ...string) (*http.Response, string) {
	t.Helper()
	r := testenv.Must(http.NewRequestWithContext(t.Context(), method, url, body))(t)
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
		r.Header.Add(header[i], header[i+1])
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	response := testenv.Must(transport.RoundTrip(r))(t)
	defer response.Body.Close()
	data := testenv.Must(io.ReadAll(response.Body))(t)
	return response, string(data)
}

// wired returns an invoker whose handler is a server in this process.
func wired(t *testing.T, handler http.Handler) *invoker {
	t.Helper()
	server := httptest.NewServer(handler)
	_, text, _ := strings.Cut(strings.TrimPrefix(server.URL, "http://"), ":")
	port := testenv.Must(strconv.Atoi(text))(t)
	transport := &http.Transport{DisableCompression: true}
	i := &invoker{client: newClient(transport),
		supervisor: &supervisor{state: ready, port: port, transport: transport, changed: make(chan struct{})}}
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		i.pending.Wait()
		transport.CloseIdleConnections()
	})
	return i
}
