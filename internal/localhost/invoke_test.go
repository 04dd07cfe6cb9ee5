package localhost

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/internal/testenv"
)

// TestInvocationOnTheWire reads the bytes of an invocation, because servers hide the spelling of headers.
func TestInvocationOnTheWire(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		chunked bool
		length  string
	}{
		"as Core Tools": {false, "Content-Length: 29"},
		"as Azure":      {true, "Transfer-Encoding: chunked"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			listening := testenv.Must(net.Listen("tcp4", "127.0.0.1:0"))(t)
			defer listening.Close()
			raw := make(chan string, 1)
			go func() { raw <- answerOnce(listening) }()
			transport := &http.Transport{DisableCompression: true}
			defer transport.CloseIdleConnections()
			i := &invoker{client: newClient(transport), chunked: test.chunked, supervisor: &supervisor{
				state: ready, port: listening.Addr().(*net.TCPAddr).Port, transport: transport, changed: make(chan struct{})}}
			testenv.Must(i.invoke(t.Context(), "My-Function", "the-id", envelope{}))(t)
			i.pending.Wait()
			head, body, _ := strings.Cut(<-raw, "\r\n\r\n")
			got := strings.Split(head, "\r\n")
			want := []string{
				"POST /My-Function HTTP/1.1",
				"Content-Type: application/json; charset=utf-8",
				"Host: " + listening.Addr().String(),
				"User-Agent: Azure-Functions-Host/4.1045.200.25556",
				"X-Azure-Functions-HostVersion: 4.1045.200.25556",
				"X-Azure-Functions-InvocationId: the-id",
				test.length,
			}
			slices.Sort(got)
			slices.Sort(want)
			testenv.Equal(t, "", want, got)
			if !strings.Contains(body, `{"Data":null,"Metadata":null}`) {
				t.Errorf("body %q", body)
			}
		})
	}
}

// answerOnce answers one request and returns its bytes.
func answerOnce(listening net.Listener) string {
	connection, err := listening.Accept()
	if err != nil {
		return err.Error()
	}
	defer connection.Close()
	var raw bytes.Buffer
	request, err := http.ReadRequest(bufio.NewReader(io.TeeReader(connection, &raw)))
	if err != nil {
		return err.Error()
	}
	_, _ = io.Copy(io.Discard, request.Body)
	_, _ = io.WriteString(connection, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
	return raw.String()
}

func TestFunctionThatTakesTooLong(t *testing.T) {
	t.Parallel()
	entered := make(chan struct{})
	i := wired(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		close(entered)
		<-r.Context().Done()
	}))
	i.timeout, i.killGrace = time.Millisecond, time.Hour
	_, err := i.invoke(t.Context(), "slow", "id", newEnvelope("slow", time.Now()))
	if !errors.Is(err, ErrTimedOut) {
		t.Errorf("error %v, want a time-out", err)
	}
	// The request continues: the handler sees it although the invocation is over.
	<-entered
}

func TestAnswerThatIsTooLarge(t *testing.T) {
	t.Parallel()
	piece := bytes.Repeat([]byte(" "), 1<<20)
	i := wired(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for range maxReply>>20 + 1 {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	}))
	_, err := i.invoke(t.Context(), "large", "id", newEnvelope("large", time.Now()))
	if err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("error %v, want one about the size", err)
	}
}
