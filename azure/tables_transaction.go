package azure

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strconv"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/vibedata/roundhouse/tables"
)

// transact sends several operations as one entity group transaction. The service always answers 202; the body has the
// outcome.
func transact(ctx context.Context, client *aztables.Client, ops []tables.Op) error {
	actions := make([]aztables.TransactionAction, len(ops))
	for i := range ops {
		action, err := transactionAction(&ops[i])
		if err != nil {
			return &tables.OpError{Index: i, Key: ops[i].Entity.Key, Err: err}
		}
		actions[i] = action
	}
	_, err := client.SubmitTransaction(ctx, actions, nil)
	if answer, ok := errors.AsType[*transactionAnswer](err); ok {
		return transactionResult(answer.body, ops)
	}
	if err == nil {
		err = errors.New("the answer was not read")
	}
	return classify(ctx, err)
}

// transactionAnswer is the body of a 202, on its way past the SDK. It is not yet a failure.
type transactionAnswer struct{ body []byte }

// Error describes an answer that was not evaluated.
func (*transactionAnswer) Error() string { return "a transaction's answer that nobody read" }

// readTransaction takes the answers to transactions before the SDK reads them. The SDK omits the failed operation and
// the reason, takes a cut-off answer for success, and panics on an empty one.
type readTransaction struct{}

// Do sends one request.
func (readTransaction) Do(req *policy.Request) (*http.Response, error) {
	resp, err := req.Next()
	if err != nil || resp.StatusCode != http.StatusAccepted {
		return resp, err
	}
	body, err := payload(resp)
	if err != nil {
		return resp, err
	}
	return resp, &transactionAnswer{body}
}

func transactionAction(op *tables.Op) (aztables.TransactionAction, error) {
	e := op.Entity
	switch op.Kind {
	case tables.OpInsert:
		body, err := encodeEntity(&e)
		return aztables.TransactionAction{ActionType: aztables.TransactionTypeAdd, Entity: body}, err
	case tables.OpUpsert:
		body, err := encodeEntity(&e)
		return aztables.TransactionAction{ActionType: aztables.TransactionTypeInsertReplace, Entity: body}, err
	case tables.OpReplace:
		// Without a condition it would be an upsert.
		body, err := encodeEntity(&e)
		return aztables.TransactionAction{ActionType: aztables.TransactionTypeUpdateReplace, Entity: body, IfMatch: etag(op)}, err
	}
	body, err := encodeEntity(&tables.Entity{Key: e.Key})
	return aztables.TransactionAction{ActionType: aztables.TransactionTypeDelete, Entity: body, IfMatch: etag(op)}, err
}

// transactionResult reads the answer to a transaction: one part per operation when all were applied, one part with an
// error when none was. Any other answer leaves the outcome open.
func transactionResult(body []byte, ops []tables.Op) error {
	if len(body) > 0 && body[0] == '{' {
		return transactionError(http.StatusBadRequest, body, ops)
	}
	parts, err := changeset(body)
	if err != nil {
		return fmt.Errorf("%w: read the transaction's answer: %w", tables.ErrOutcomeUnknown, err)
	}
	applied := 0
	for {
		part, err := parts.NextRawPart()
		if err != nil {
			break // the end, or a cut-off answer: the count decides
		}
		resp, err := http.ReadResponse(bufio.NewReader(part), nil)
		if err != nil {
			break
		}
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode >= 400 {
			return transactionError(resp.StatusCode, text, ops)
		}
		if err != nil {
			break
		}
		applied++
	}
	if applied != len(ops) {
		return fmt.Errorf("%w: the answer speaks of %d operations of %d", tables.ErrOutcomeUnknown, applied, len(ops))
	}
	return nil
}

// changeset opens the inner of the two multiparts. Both boundaries are taken from their first line, since the
// emulator's headers are unreliable.
func changeset(body []byte) (*multipart.Reader, error) {
	outer := multipart.NewReader(bytes.NewReader(body), firstBoundary(body))
	part, err := outer.NextRawPart()
	if err != nil {
		return nil, err
	}
	inner, err := io.ReadAll(part)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	return multipart.NewReader(bytes.NewReader(inner), firstBoundary(inner)), nil
}

func firstBoundary(body []byte) string {
	line, _, _ := strings.Cut(string(body[:min(len(body), 256)]), "\n")
	return strings.TrimPrefix(strings.TrimSpace(line), "--")
}

// transactionError reads {"odata.error":{"code":"EntityAlreadyExists","message":{"value":"7:The specified ..."}}},
// where the number is the operation's index.
func transactionError(status int, body []byte, ops []tables.Op) error {
	var answer struct {
		Error struct {
			Code    string `json:"code"`
			Message struct {
				Value string `json:"value"`
			} `json:"message"`
		} `json:"odata.error"`
	}
	index := -1
	if err := json.Unmarshal(body, &answer); err == nil {
		number, _, _ := strings.Cut(answer.Error.Message.Value, ":")
		if n, err := strconv.Atoi(number); err == nil {
			index = n
		}
	}
	return blame(failureOf(status, answer.Error.Code), index, ops)
}
