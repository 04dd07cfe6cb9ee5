package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/vibedata/roundhouse/engine"
)

// editedMessage is the body of a retry with another message: the whole message, as its sender would have sent it.
type editedMessage struct {
	Message *string `json:"message"`
}

// retryEdited sends another message in place of the original one of a dead letter. The audit log has hashes of both,
// and no content.
func (a *api) retryEdited(ctx context.Context, r *request) (reply, error) {
	engineName, rowKey, err := a.retriedRow(ctx, r)
	if err != nil {
		return reply{}, err
	}
	var body editedMessage
	if err := r.decode(&body); err != nil {
		return reply{}, err
	}
	if body.Message == nil || *body.Message == "" {
		return reply{}, &failure{status: http.StatusBadRequest, problem: problem{Code: codeInvalidParameter, Message: "Give the whole message that is to be sent.", Target: "message"}}
	}
	message := []byte(*body.Message)
	d, err := a.letter(ctx, r, engineName, rowKey)
	if err != nil {
		return reply{}, err
	}
	if who := r.principal(); who.Scope != "" {
		var m engine.Message
		if err := json.Unmarshal(message, &m); err != nil {
			return reply{}, a.deadLetterFailure(engineName, fmt.Errorf("%w: %w", engine.ErrEdit, err))
		}
		if err := a.owners.allow(ctx, who, engineName, m); err != nil {
			return reply{}, err
		}
	}
	c := letterChange("retry edited", d, nil)
	c.Before = fmt.Sprintf("%s, message of %d bytes, sha256 %s", d.Status, len(d.OriginalMessage), hashOf(d.OriginalMessage))
	if err := r.call.Begin(ctx, c); err != nil {
		return reply{}, err
	}
	if d, err = a.retrier.RetryEdited(ctx, engineName, rowKey, r.by(), engine.Edit{Message: message, IfMatch: ifMatch(r.http.Header)}); err != nil {
		return reply{}, a.deadLetterFailure(engineName, err)
	}
	r.after = fmt.Sprintf("%s, message %s of %d bytes, sha256 %s", d.Status, d.RetryMessageID, len(d.SentMessage), hashOf(d.SentMessage))
	return reply{data: retriedLetterOf(d)}, nil
}

// hashOf returns the hash of a message for the audit log, which does not contain the message.
func hashOf(message []byte) string {
	sum := sha256.Sum256(message)
	return hex.EncodeToString(sum[:])
}

// editFailure returns the answer to errors about edited messages, nil for others.
func editFailure(err error) *failure {
	switch {
	case errors.Is(err, engine.ErrNotEditable):
		return &failure{status: http.StatusUnprocessableEntity, problem: problem{Code: codeEditUnsupported, Message: reasonOf(err, engine.ErrNotEditable, "The dead letter")}}
	case errors.Is(err, engine.ErrEdit):
		return &failure{status: http.StatusUnprocessableEntity, problem: problem{Code: codeInvalidMessage, Message: reasonOf(err, engine.ErrEdit, ""), Target: "message"}}
	case errors.Is(err, engine.ErrOtherMessage):
		return &failure{status: http.StatusConflict, problem: problem{
			Code: codeInvalidState, Message: "A retry of the dead letter has begun already, with another message. Look at what became of it."}}
	default:
		return nil
	}
}

// reasonOf returns the text of an error after that of its kind, as a sentence about a subject.
func reasonOf(err, kind error, subject string) string {
	text := err.Error()
	if at := strings.Index(text, kind.Error()); at > 0 {
		text = text[at:]
	}
	if subject != "" {
		text = subject + " " + text
	}
	return strings.ToUpper(text[:1]) + strings.ReplaceAll(text[1:], "\n", "; ") + "."
}
