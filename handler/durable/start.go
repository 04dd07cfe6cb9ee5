package durable

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/handler/api"
	"github.com/vibedata/roundhouse/internal/payload"
	"github.com/vibedata/roundhouse/internal/traceparent"
	"github.com/vibedata/roundhouse/orchestrator"
)

// maxInstanceID bounds the id of an instance, in characters.
const maxInstanceID = 256

// start starts an orchestration, in place of an ended one, and waits for it if requested.
func (s *server) start(in *call) (answer, error) {
	input, err := in.json(false)
	if err != nil {
		return answer{}, err
	}
	wait, err := in.patience()
	if err != nil {
		return answer{}, err
	}
	id := ""
	if len(in.path) == 3 {
		id = in.path[2]
	}
	if err := checkInstanceID(id); err != nil {
		return answer{}, err
	}
	return s.begin(in, orchestrator.Start{ID: id, Orchestrator: in.path[1], Version: in.text("version"), Input: input}, wait)
}

func checkInstanceID(id string) error {
	switch {
	case strings.HasPrefix(id, "@"):
		return badArgument("Orchestration instance ids must not start with @.")
	case !utf8.ValidString(id), strings.ContainsAny(id, `/\#?`), strings.ContainsFunc(id, unicode.IsControl):
		return badArgument(`Orchestration instance ids must not contain /, \, #, ?, or control characters.`)
	case utf8.RuneCountInString(id) > maxInstanceID:
		return badArgument("Instance ID lengths must not exceed 256 characters.")
	default:
		return nil
	}
}

// begin starts an orchestration and answers when it is durable, or when the wait is over.
func (s *server) begin(in *call, what orchestrator.Start, wait *patience) (answer, error) {
	what.Reuse, what.RequestID, what.Trace = orchestrator.ReuseEnded, api.RequestKey(in.http.Header), traceparent.From(in.ctx)
	principal := in.door.Principal
	if what.TenantID == "" {
		what.TenantID = principal.Scope
	}
	var err error
	if s.Admit != nil {
		if what, err = api.OwnStart(in.ctx, principal, what, s.Owners); err != nil {
			return answer{}, err
		}
		if what, err = s.Admit(in.ctx, what); err != nil {
			return answer{}, err
		}
	}
	if what.ID == "" {
		what.ID = strings.ReplaceAll(in.newID("instance"), "-", "")
	}
	if what.CorrelationID == "" {
		what.CorrelationID = in.newID("correlation")
	}
	if there, err := s.Runtime.Status(in.ctx, what.ID); principal.Scope != "" && err == nil && !principal.Sees(there.TenantID) {
		in.door.Refused(in.ctx, errOthers)
		return answer{}, orchestrator.ErrExists
	}
	if err := in.door.Begin(in.ctx, access.Change{Action: "start " + what.Orchestrator, Target: "orchestrations/" + what.ID, Tenant: what.TenantID}); err != nil {
		return answer{}, err
	}
	if _, err := s.Runtime.Start(in.ctx, what); err != nil {
		return answer{}, err
	}
	return s.begun(in, what.ID, wait)
}

// newID returns a new id for a request's start: the same one when the host repeats the request.
func (in *call) newID(of string) string {
	key := api.RequestKey(in.http.Header)
	if key == "" {
		return uuid.NewString()
	}
	return uuid.NewSHA1(uuid.NameSpaceOID, []byte("durable\n"+of+"\n"+key+in.door.Principal.Scope)).String()
}

// begun returns the answer to a start.
func (s *server) begun(in *call, id string, wait *patience) (answer, error) {
	if wait == nil {
		return in.checkStatus(id), nil
	}
	ended, err := s.wait(in.ctx, id, *wait)
	switch {
	case err != nil:
		return answer{}, err
	case !ended:
		return in.checkStatus(id), nil
	}
	shown, status, err := s.inspect(in, id, true, false, false)
	switch {
	case err != nil:
		return answer{}, err
	case status == orchestrator.Completed:
		return document(http.StatusOK, shown.Output), nil
	default:
		return document(http.StatusOK, shown), nil
	}
}

// patience is the time to wait, and the polling interval.
type patience struct{ timeout, interval time.Duration }

// leastInterval bounds the polling rate: each poll is a transaction.
const leastInterval = 100 * time.Millisecond

// patience reads timeout and pollingInterval; nil if one of them is missing.
func (in *call) patience() (*patience, error) {
	timeout, given := in.seconds("timeout")
	interval, too := in.seconds("pollingInterval")
	switch {
	case !given || !too:
		return nil, nil
	case interval > timeout:
		return nil, badArgument("Total timeout should be bigger than retry timeout")
	case timeout < 0 || interval < 0:
		return nil, badArgument("timeout and pollingInterval must not be negative")
	}
	return &patience{timeout, max(interval, leastInterval)}, nil
}

// wait polls until the orchestration has ended or the time is over.
func (s *server) wait(ctx context.Context, id string, p patience) (ended bool, err error) {
	timeout := max(0, min(p.timeout, s.Timeout-settle))
	over := time.NewTimer(timeout)
	defer over.Stop()
	for {
		status, err := s.Runtime.Status(ctx, id)
		if err != nil || status.Ended() {
			return err == nil, err
		}
		next := time.NewTimer(p.interval)
		select {
		case <-next.C:
		case <-over.C:
			next.Stop()
			status, err := s.Runtime.Status(ctx, id)
			return err == nil && status.Ended(), err
		case <-ctx.Done():
			next.Stop()
			return false, context.Cause(ctx)
		}
	}
}

// json reads the body, one JSON value. An empty body is null, unless one is required.
func (in *call) json(required bool) (json.RawMessage, error) {
	if err := payload.CheckEncoding(in.http.Header.Values("Content-Encoding")); err != nil {
		return nil, &refusal{http.StatusUnsupportedMediaType, "The request body cannot be read", err}
	}
	text, err := io.ReadAll(in.http.Body)
	if err != nil {
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			return nil, err
		}
		return nil, &refusal{http.StatusBadRequest, "The body broke off", err}
	}
	text = bytes.TrimPrefix(text, []byte(payload.ByteOrderMark))
	if len(text) == 0 && !required {
		return json.RawMessage("null"), nil
	}
	if err := payload.Check(text); err != nil {
		return nil, err
	}
	if !utf8.Valid(text) || !json.Valid(text) {
		return nil, &refusal{status: http.StatusBadRequest, text: "Invalid JSON content"}
	}
	return text, nil
}
