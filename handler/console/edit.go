package console

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf16"

	"github.com/vibedata/roundhouse/handler/access"
)

const (
	editPath = letterPath + "/edit"
	// maxEdited is the longest text that a form edits, in bytes: a form sends up to three for one.
	maxEdited = 64 << 10
	// editedDone is the notice on the page of a dead letter after an edited message was sent.
	editedDone = "edited"
	// hiddenMark replaces secrets in the API's answers.
	hiddenMark = "[redacted]"
)

// editRoutes are those of a retry with an edited message.
func editRoutes() []route {
	return []route{
		routeOf(http.MethodGet, editPath, access.DeadLettersRead, editLetter),
		routeOf(http.MethodPost, editPath, access.DeadLettersEdit, editedLetter),
	}
}

// editPage edits the message of a dead letter, and shows its changes before it is sent.
type editPage struct {
	Letter letterDetail
	// Message is the edited text, unchanged; Text would change it.
	Message string
	// Diff is the change; only the confirmation page has one.
	Diff diff
	// Hidden means that the message has secrets, which are not shown.
	Hidden bool
	// Action is the target of the form, ETag the displayed version, and Key makes repeats of the form one change.
	Action, ETag, Key string
	Missing           access.Permission
	// Refused is the reason why the message cannot be edited, and Problem the error of sending it; "" for none.
	Refused, Problem Text
}

// Command returns the same as a command line, with the message in a file.
func (p editPage) Command() Text {
	return commandLine("roundhouse", "dlq", "retry", string(p.Letter.Engine), string(p.Letter.RowKey), "--edit")
}

// editOf returns the page for a dead letter, with its message as it is.
func (v *visit) editOf(l letterDetail) *editPage {
	p := &editPage{Letter: l, Action: l.Link() + "/edit", ETag: l.etag, Key: v.console.config.NewKey(), Hidden: strings.Contains(l.OriginalMessage, hiddenMark)}
	switch text, why := editable(l); {
	case l.Status != "Pending":
		p.Refused = Text("Somebody has decided about it already: it is " + l.Status + ". Only what is pending can be sent again.")
	case why != "":
		p.Refused = why
	default:
		p.Message = text
	}
	if !v.may(access.DeadLettersEdit) {
		p.Missing = access.DeadLettersEdit
	}
	return p
}

// editable returns the message of a dead letter for a form: JSON in lines, with escapes for invisible characters, so
// that nothing is hidden or lost. Other text stays as it is. why is the reason for a missing text.
func editable(l letterDetail) (text string, why Text) {
	document := l.OriginalMessage
	switch {
	case l.OriginalMessageEncoding != "":
		return "", Text("The message is no text, but bytes, shown as " + l.OriginalMessageEncoding + ". What is no text cannot be edited: send the message anew from where it came.")
	case len(document) > maxEdited:
		return "", Text(fmt.Sprintf("The message has %s, and a page edits up to %s. The command line edits larger ones, as far as a queue takes them.", size(len(document)), size(maxEdited)))
	case !json.Valid([]byte(document)):
		if Text(document).String() != document {
			return "", "The message has characters that cannot be seen, and is no JSON, which could be written without them. The command line edits it as it is."
		}
		return document, ""
	}
	text = document
	var indented bytes.Buffer // numbers stay unchanged: nothing is decoded
	if depth(document) <= maxDepth && json.Indent(&indented, []byte(document), "", "  ") == nil && indented.Len() <= maxEdited {
		text = indented.String()
	}
	if text = escapeUnseen(text); len(text) > maxEdited {
		return "", Text(fmt.Sprintf("The message has %s as it is edited, and a page edits up to %s. Use the command line.", size(len(text)), size(maxEdited)))
	}
	return text, ""
}

// escapeUnseen writes the invisible characters in a document's strings as escapes.
func escapeUnseen(document string) string {
	var out strings.Builder
	for _, c := range document {
		if visible(c) == c || c == '\r' {
			out.WriteRune(c)
			continue
		}
		for _, unit := range utf16.Encode([]rune{c}) {
			fmt.Fprintf(&out, `\u%04x`, unit)
		}
	}
	return out.String()
}

// editLetter returns the page with the message.
func editLetter(ctx context.Context, v *visit) (page, error) {
	l, err := v.find(ctx)
	if err != nil {
		return page{}, err
	}
	return v.editOf(l).form(), nil
}

// form returns the page that edits the message.
func (p *editPage) form() page {
	out := page{template: "edit", title: "Edit and retry a dead letter", model: p}
	if command := p.Command(); command != "" {
		out.elsewhere = &elsewhere{Command: command}
	}
	return out
}

// refused returns the form again, with its error.
func (p *editPage) refused(status int, code string, why Text) page {
	p.Problem = why
	out := p.form()
	out.status, out.code = status, code
	return out
}

// editedLetter processes the entered text: it shows the changes, or returns to editing, or sends it and leads back to
// the dead letter. A form that is sent twice sends it once.
func editedLetter(ctx context.Context, v *visit) (page, error) {
	form, header, err := v.posted()
	if err != nil {
		return page{}, err
	}
	step := form.Get("step")
	if step != "send" && !v.may(access.DeadLettersEdit) { // for a sent message, the API refuses and records
		return refusedPage(http.StatusForbidden, "Forbidden", Text("You need the permission "+access.DeadLettersEdit+".")), nil
	}
	l, err := v.find(ctx)
	if err != nil {
		return page{}, err
	}
	entered := strings.ReplaceAll(form.Get("message"), "\r\n", "\n")
	if step == "send" {
		return v.sendEdited(ctx, l, entered, form, header)
	}
	p := v.editOf(l)
	before := p.Message
	p.take(form, entered)
	switch {
	case step == "edit" || p.Refused != "":
		return p.form(), nil
	case json.Valid([]byte(l.OriginalMessage)):
		if at := broken(entered); at != "" {
			return p.refused(http.StatusBadRequest, "InvalidRequestBody", "The original message is JSON, and this is not: "+at), nil
		}
	}
	p.Diff = diffOf(before, entered)
	return page{template: "editdiff", title: "Retry with an edited message", model: p}, nil
}

// take keeps the values of a form.
func (p *editPage) take(form url.Values, entered string) {
	p.Message = entered
	if key := form.Get("key"); key != "" {
		p.Key = key
	}
	if seen := form.Get("etag"); seen != "" { // the message is for the displayed version
		p.ETag = seen
	}
}

// sendEdited sends the entered text.
func (v *visit) sendEdited(ctx context.Context, l letterDetail, entered string, form url.Values, header http.Header) (page, error) {
	_, err := v.api.send(ctx, http.MethodPost, v.letterRow()+"/retry-edited", nil, header, map[string]string{"message": asSent(l.OriginalMessage, entered)}, nil)
	refused, ok := asAPIError(err)
	switch {
	case err == nil:
		return page{to: l.Link() + "?done=" + editedDone}, nil
	case !ok || refused.Status == http.StatusNotFound:
		return page{}, err
	}
	p := v.editOf(l)
	p.take(form, entered)
	return p.refused(refused.Status, refused.Code, refused.Message), nil
}

// asSent returns a message for sending: JSON without the blanks of the form, other text with the line ends of the
// original.
func asSent(original, entered string) string {
	var compact bytes.Buffer
	if json.Compact(&compact, []byte(entered)) == nil { // numbers stay as entered
		return compact.String()
	}
	if strings.Contains(original, "\r\n") {
		return strings.ReplaceAll(entered, "\n", "\r\n")
	}
	return entered
}

// broken returns the position at which a text is not JSON, "" if it is JSON.
func broken(text string) Text {
	var any json.RawMessage
	err := json.Unmarshal([]byte(text), &any)
	if err == nil {
		return ""
	}
	if at, ok := errors.AsType[*json.SyntaxError](err); ok && at.Offset >= 0 && int(at.Offset) <= len(text) {
		return Text(fmt.Sprintf("line %d: %s.", 1+strings.Count(text[:at.Offset], "\n"), at.Error()))
	}
	return Text(err.Error() + ".")
}
