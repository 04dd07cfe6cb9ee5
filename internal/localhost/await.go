package localhost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// answerPoll is the polling interval of WaitAnswer.
const answerPoll = 50 * time.Millisecond

// WaitAnswer waits until GET of a path is answered with 200, such as the readiness probe of an app that is still
// preparing its storage. If ctx ends first, the error has the last answer.
func (h *Host) WaitAnswer(ctx context.Context, path string) error {
	if err := h.WaitReady(ctx); err != nil {
		return err
	}
	tick := time.NewTicker(answerPoll)
	defer tick.Stop()
	for {
		status, err := statusOf(ctx, h.URL()+path)
		if err == nil && status == http.StatusOK {
			return nil
		}
		select {
		case <-tick.C:
		case <-h.ended:
			return errors.Join(fmt.Errorf("wait for %s: %w", path, ErrStopped), h.endErr)
		case <-ctx.Done():
			return fmt.Errorf("%s is not answered with 200 (status %d, %v): %w", path, status, err, context.Cause(ctx))
		}
	}
}

func statusOf(ctx context.Context, url string) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
	return resp.StatusCode, err
}
