package realhost

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/vibedata/roundhouse/internal/testenv"
)

// recordEnv makes a process of this test binary a handler that appends every request as a line of JSON to the file that
// the variable names.
const recordEnv = "ROUNDHOUSE_TEST_RECORD"

// maxDequeueCount is the number of deliveries before a message is moved to the poison queue.
const maxDequeueCount = 2

// recorded is a request as a handler receives it.
type recorded struct {
	Method, URI string
	Header      http.Header
	Length      int64
	Body        string
}

// beHandler runs a handler until it is killed. Its answers are valid for functions of all kinds; the function "failing"
// fails.
func beHandler(file string) error {
	var mu sync.Mutex
	return http.ListenAndServe("127.0.0.1:"+os.Getenv("FUNCTIONS_CUSTOMHANDLER_PORT"), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		line, err2 := json.Marshal(recorded{r.Method, r.RequestURI, r.Header, r.ContentLength, string(body)})
		if err != nil || err2 != nil || r.RequestURI == "/" {
			return // the probe, or a client that disconnected
		}
		mu.Lock()
		defer mu.Unlock()
		if err := appendLine(file, line); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/failing" {
			w.WriteHeader(http.StatusInternalServerError)
		}
		_, _ = io.WriteString(w, "{}")
	}))
}

func appendLine(file string, line []byte) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.Write(append(line, '\n'))
	return err
}

// recording is an app whose handler records.
type recording struct {
	app
	file string
}

// newRecording makes an app with these functions: file names below the script root, with their contents.
func newRecording(t *testing.T, functions map[string]string) recording {
	t.Helper()
	dist := t.TempDir()
	r := recording{app: app{dist: dist, account: storage(t), key: newKey(), id: "recorded"}, file: filepath.Join(t.TempDir(), "requests")}
	r.env = []string{recordEnv + "=" + r.file}
	binary := testenv.Must(os.Executable())(t)
	files := map[string]string{"local.settings.json": `{"IsEncrypted":false,"Values":{"FUNCTIONS_WORKER_RUNTIME":"custom"}}`,
		"host.json": `{"version":"2.0","customHandler":{"description":{"defaultExecutablePath":"handler"},"enableForwardingHttpRequest":true,"enableProxyingHttpRequest":true},
			"extensions":{"queues":{"messageEncoding":"none","maxPollingInterval":"00:00:01","visibilityTimeout":"00:00:00","maxDequeueCount":` + strconv.Itoa(maxDequeueCount) + `}}}`}
	for name, bindings := range functions {
		files[filepath.Join(name, "function.json")] = `{"bindings":[` + bindings + `]}`
	}
	for name, text := range files {
		path := filepath.Join(dist, name)
		testenv.OK(t, os.MkdirAll(filepath.Dir(path), 0o700))
		testenv.OK(t, os.WriteFile(path, []byte(text), 0o600))
	}
	testenv.OK(t, os.Symlink(binary, filepath.Join(dist, "handler")))
	return r
}

// requests waits until the handler has received a number of requests, and returns the last ones.
func (r recording) requests(t *testing.T, count int) (last []recorded) {
	t.Helper()
	testenv.Until(t, fmt.Sprintf("%d requests for the handler", count), func() bool {
		text, err := os.ReadFile(r.file)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		last = nil
		for line := range strings.Lines(string(text)) {
			var one recorded
			if err := json.Unmarshal([]byte(line), &one); err != nil {
				return false // an incomplete line
			}
			last = append(last, one)
		}
		return len(last) >= count
	})
	return last
}

// shown returns a request without the parts that differ between runs. The members of an invocation's body are
// unordered.
func (r recorded) shown(t *testing.T) string {
	t.Helper()
	for name, values := range r.Header {
		switch name {
		case "Traceparent": // hosts do not sample the traces that they start
			if strings.HasSuffix(values[0], "-00") {
				r.Header[name] = []string{"<trace>"}
			}
		case "X-Azure-Functions-Invocationid", "X-Ms-Invocation-Id":
			r.Header[name] = []string{"<id>"}
		}
	}
	if strings.HasPrefix(r.Body, `{"Data":`) {
		if int64(len(r.Body)) != r.Length || r.Header.Get("Content-Length") != strconv.FormatInt(r.Length, 10) {
			t.Errorf("a body of %d bytes has the length %d", len(r.Body), r.Length)
		}
		r.Length = 0
		r.Header.Del("Content-Length")
		var body any
		testenv.OK(t, json.Unmarshal([]byte(r.Body), &body))
		text := testenv.Must(json.Marshal(body))(t)
		r.Body = string(text)
	}
	text := testenv.Must(json.MarshalIndent(r, "", " "))(t)
	return vary(string(text))
}
