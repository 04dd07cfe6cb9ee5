package localhost

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
)

// WaitAnswer ends with the expected answer, with its context, or with the host.
func TestWaitAnswer(t *testing.T) {
	t.Parallel()
	host, stop, ended := newApp(t).start(t)
	defer http.DefaultClient.CloseIdleConnections()
	if err := host.WaitAnswer(t.Context(), "/admin/host/status"); err != nil {
		t.Error(err)
	}
	hurried, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	if err := host.WaitAnswer(hurried, "/nothing"); !errors.Is(err, enough) && !errors.Is(err, context.Canceled) {
		t.Errorf("after the context: %v", err)
	}
	waited := make(chan error, 1)
	go func() { waited <- host.WaitAnswer(context.WithoutCancel(t.Context()), "/nothing") }()
	stop()
	<-ended
	if err := <-waited; !errors.Is(err, ErrStopped) || !strings.Contains(err.Error(), "/nothing") && !strings.Contains(err.Error(), "local host") {
		t.Errorf("after the host: %v", err)
	}
}
