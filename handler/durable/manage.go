package durable

import (
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/handler/api"
	"github.com/vibedata/roundhouse/orchestrator"
)

const (
	// maxReason bounds the reason of a command, maxEventName the name of an event, in bytes.
	maxReason    = 1 << 10
	maxEventName = 256
)

// going returns an instance that has not ended. The answer is 404 or 410 for any other.
func (s *server) going(in *call) (orchestrator.Summary, error) {
	status, err := s.own(in)
	if err == nil && status.Ended() {
		err = errGone
	}
	return status, err
}

// own returns an instance that the caller may see; another tenant's does not exist.
func (s *server) own(in *call) (orchestrator.Summary, error) {
	status, err := s.Runtime.Status(in.ctx, in.instance())
	if err == nil && !in.door.Principal.Sees(status.TenantID) {
		in.door.Refused(in.ctx, errOthers)
		return orchestrator.Summary{}, orchestrator.ErrNotFound
	}
	return status, err
}

// errOthers: the instance is another tenant's.
var errOthers = errors.New("it belongs to another tenant")

// begin records a change of an instance.
func (in *call) begin(action string, s orchestrator.Summary, reason string) error {
	return in.door.Begin(in.ctx, access.Change{Action: action, Target: "orchestrations/" + s.ID, Tenant: s.TenantID, Before: string(s.Status), Reason: reason})
}

// errGone: the instance has ended.
var errGone = &refusal{status: http.StatusGone}

// told returns the endpoint of a command.
func (s *server) told(action string, tell func(rt *orchestrator.Runtime, ctx context.Context, id, reason string) error) endpoint {
	return endpoint{access.OrchestrationsCommand, func(in *call) (answer, error) {
		reason, err := in.reason()
		if err != nil {
			return answer{}, err
		}
		status, err := s.going(in)
		if err != nil && !errors.Is(err, orchestrator.ErrNotFound) {
			return gone(err)
		}
		if damaged := s.Runtime.Readable(in.ctx, in.instance()); damaged != nil && in.door.Principal.Sees(status.TenantID) {
			return answer{}, damaged // no runtime could carry it out
		}
		if err != nil {
			return answer{}, err
		}
		if err := in.begin(action, status, reason); err != nil {
			return answer{}, err
		}
		if err := tell(s.Runtime, in.ctx, in.instance(), reason); err != nil {
			return answer{}, err
		}
		return nothing(http.StatusAccepted), nil
	}}
}

func (in *call) reason() (string, error) {
	reason := in.text("reason")
	if len(reason) > maxReason {
		return "", badArgument("the reason has more than 1,024 bytes")
	}
	return strings.ToValidUTF8(reason, "\uFFFD"), nil
}

// gone answers errGone with 410 and without a body, and returns any other error.
func gone(err error) (answer, error) {
	if errors.Is(err, errGone) {
		return nothing(http.StatusGone), nil
	}
	return answer{}, err
}

// raise sends an event to an instance.
func (s *server) raise(in *call) (answer, error) {
	status, err := s.going(in)
	if err != nil {
		return gone(err)
	}
	name := in.path[3]
	if len(name) > maxEventName || !utf8.ValidString(name) {
		return answer{}, badArgument("the name of the event has more than 256 bytes, or is not UTF-8")
	}
	if media, _, err := mime.ParseMediaType(in.http.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return answer{}, &refusal{status: http.StatusBadRequest, text: "Only application/json request content is supported"}
	}
	value, err := in.json(true)
	if err != nil {
		return answer{}, err
	}
	if err := in.begin("raise "+name, status, ""); err != nil {
		return answer{}, err
	}
	if err := s.Runtime.Raise(in.ctx, in.instance(), name, value, api.RequestKey(in.http.Header)); err != nil {
		return answer{}, err
	}
	return nothing(http.StatusAccepted), nil
}

// rewind rewinds a failed instance.
func (s *server) rewind(in *call) (answer, error) {
	reason, err := in.reason()
	if err != nil {
		return answer{}, err
	}
	status, err := s.own(in)
	switch {
	case err != nil:
		return answer{}, err
	case status.Ended() && status.Status != orchestrator.Failed:
		return nothing(http.StatusGone), nil
	}
	if err := in.begin("rewind", status, reason); err != nil {
		return answer{}, err
	}
	_, err = s.Runtime.Rewind(in.ctx, in.instance(), api.RequestKey(in.http.Header))
	switch {
	case errors.Is(err, orchestrator.ErrActive):
		return answer{}, badArgument("Only orchestrations that have failed can be rewound.")
	case errors.Is(err, orchestrator.ErrEnded):
		return nothing(http.StatusGone), nil
	case err != nil:
		return answer{}, err
	}
	return nothing(http.StatusAccepted), nil
}

// restart restarts an instance: as a new one, or under the same id.
func (s *server) restart(in *call) (answer, error) {
	wait, err := in.patience()
	if err != nil {
		return answer{}, err
	}
	id := in.instance()
	status, err := s.own(in)
	var found orchestrator.Inspection
	if err == nil {
		found, err = s.Runtime.Inspect(in.ctx, id)
	}
	if errors.Is(err, orchestrator.ErrNotFound) {
		return answer{}, &refusal{http.StatusBadRequest, "InstanceId does not match a valid orchestration instance.", nil}
	}
	if err != nil {
		return answer{}, err
	}
	if in.flag("restartWithNewInstanceId", true) {
		return s.begin(in, orchestrator.Start{TenantID: found.TenantID, Orchestrator: found.Orchestrator, Input: inputOf(found), Reference: found.Reference, CorrelationID: in.newID("correlation")}, wait)
	}
	if err := in.begin("restart", status, ""); err != nil {
		return answer{}, err
	}
	if _, err := s.Runtime.Restart(in.ctx, id, api.RequestKey(in.http.Header)); err != nil {
		return answer{}, err
	}
	return s.begun(in, id, wait)
}

// inputOf returns the input of an instance.
func inputOf(in orchestrator.Inspection) json.RawMessage {
	if len(in.Outcome.Input) == 0 {
		return json.RawMessage("null")
	}
	return in.Outcome.Input
}
