package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/client"
)

// maxEdited bounds a message that is read to be sent, in bytes: the API accepts no larger body.
const maxEdited = 256 << 10

// editFlags select the source of the message that replaces that of a dead letter.
type editFlags struct {
	edit bool
	file string
}

// given reports whether there is another message, or returns an error for exclusive flags.
func (e editFlags) given(all bool) (bool, error) {
	if e.edit && e.file != "" || all && (e.edit || e.file != "") {
		return false, Mark(ErrUsage, errors.New("--edit, --message and --all go without each other: an edit is of one message"))
	}
	return e.edit || e.file != "", nil
}

// retryEdited sends another message in place of that of a dead letter: from the editor, or from a file.
func (a *app) retryEdited(ctx context.Context, args []string, e editFlags) error {
	path := append([]string{"dlq"}, args...)
	c, err := a.api(ctx)
	if err != nil {
		return err
	}
	answer, err := a.ask(ctx, c, client.Request{Method: http.MethodGet, Path: path})
	if err != nil {
		return err
	}
	var letter client.DeadLetterMessage
	if err := decodeInto(answer.Data, &letter); err != nil {
		return err
	}
	var message []byte
	if e.edit {
		message, err = a.edited(ctx, letter)
	} else {
		message, err = a.messageOf(e.file)
	}
	if err != nil {
		return err
	}
	if message == nil {
		a.note("Nothing was changed, and nothing is sent.")
		return nil
	}
	r := post(map[string]string{"message": string(message)}, append(path, "retry-edited")...)
	r.IfMatch = answer.ETag
	return a.tell(ctx, a.api, r)
}

// messageOf reads a message from a file, or from standard input for -.
func (a *app) messageOf(name string) ([]byte, error) {
	in := a.Stdin
	if name != "-" {
		file, err := os.Open(name) // a file of the operator's own choice
		if err != nil {
			return nil, Mark(ErrUsage, fmt.Errorf("--message: %w", err))
		}
		defer file.Close()
		in = file
	}
	message, err := io.ReadAll(io.LimitReader(in, maxEdited+1))
	switch {
	case err != nil:
		return nil, Mark(ErrUsage, fmt.Errorf("--message: %w", err))
	case len(message) > maxEdited:
		return nil, Mark(ErrUsage, fmt.Errorf("--message: it has more than %d bytes", maxEdited))
	case len(message) == 0 || !utf8.Valid(message):
		return nil, Mark(ErrUsage, errors.New("--message: it is empty, or no UTF-8"))
	}
	return message, nil
}

// edited opens the message of a dead letter in the editor; nil means unchanged. JSON is edited in lines, and sent
// without the blanks between them; its numbers stay unchanged.
func (a *app) edited(ctx context.Context, l client.DeadLetterMessage) (message []byte, err error) {
	switch {
	case l.OriginalMessageEncoding != "":
		return nil, errors.New("the message is no text, and cannot be edited: send it anew from where it came")
	case a.Edit == nil && !a.screen.asks:
		return nil, Mark(ErrUsage, errors.New("--edit needs a terminal: use --message FILE"))
	}
	before := []byte(l.OriginalMessage)
	var lines bytes.Buffer
	if json.Indent(&lines, before, "", "  ") == nil {
		lines.WriteByte('\n')
		before = lines.Bytes()
	}
	if strings.Contains(l.OriginalMessage, "[redacted]") {
		a.note("Where the message says [redacted], it has a secret, which nobody is shown. It is not sent like this: put the secret in its place.")
	}
	dir, err := os.MkdirTemp("", "roundhouse-") // readable only for the operator
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	name := filepath.Join(dir, "message.json")
	if err := os.WriteFile(name, before, 0o600); err != nil {
		return nil, err
	}
	edit := a.Edit
	if edit == nil {
		edit = a.editor
	}
	if err := edit(ctx, name); err != nil {
		return nil, fmt.Errorf("edit the message: %w", err)
	}
	after, err := a.messageOf(name)
	if err != nil || bytes.Equal(before, after) {
		return nil, err
	}
	if lines.Len() > 0 {
		lines.Reset()
		if err := json.Compact(&lines, after); err != nil {
			return nil, fmt.Errorf("the message was JSON, and is not any more: %w", err)
		}
		return lines.Bytes(), nil
	}
	return after, nil
}

// editor opens a file in the editor that the environment names.
func (a *app) editor(ctx context.Context, name string) error {
	words := strings.Fields(cmp.Or(a.setting("", "VISUAL"), a.setting("", "EDITOR"), "vi"))
	c := exec.CommandContext(ctx, words[0], append(words[1:], name)...) //nolint:gosec // the operator's own editor
	c.Stdin, c.Stdout, c.Stderr = a.Stdin, a.Stdout, a.Stderr
	return c.Run()
}
