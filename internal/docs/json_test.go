package docs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/alerts"
	"github.com/vibedata/roundhouse/engine/health"
	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/engine/provisioning"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/engine/release"
	"github.com/vibedata/roundhouse/engine/spn"
	"github.com/vibedata/roundhouse/engine/tls"
	"github.com/vibedata/roundhouse/engine/update"
	"github.com/vibedata/roundhouse/engine/updatepublisher"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/poller/sink"
)

// Every block of JSON can be pasted, and is valid input or output of the program: the words after the language select
// the reader.
func TestJSON(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	for _, b := range blocksOf(t, "json") {
		t.Run(fmt.Sprintf("%s:%d", b.page, b.line), func(t *testing.T) {
			t.Parallel()
			read := testenv.Must(reader(t, b.words))(t)
			if err := read([]byte(b.text)); err != nil {
				t.Error(err)
			}
			wrong := testenv.Must(misspelt([]byte(b.text)))(t)
			if read(wrong) == nil {
				t.Errorf("the check does not notice the member that this has and nobody knows:\n%s", wrong)
			}
		})
	}
}

// misspelt returns a document with an unknown member in the object, or in the first one of an array.
func misspelt(text []byte) ([]byte, error) {
	at := bytes.IndexByte(text, '{') + 1
	if at == 0 || !json.Valid(text) {
		return nil, errors.New("the block is no JSON document with an object")
	}
	return bytes.Join([][]byte{text[:at], text[at:]}, []byte(`"unheardOf": {}, `)), nil
}

// reader returns the decoder of a document, by the words of its block.
func reader(t *testing.T, words []string) (func([]byte) error, error) {
	t.Helper()
	kind, name := strings.Join(words, " "), ""
	if len(words) == 2 {
		kind, name = words[0], words[1]
	}
	switch kind {
	case "message":
		return func(text []byte) error { return readMessage(name, text) }, nil
	case "setting":
		return func(text []byte) error { return readSetting(t, name, string(text)) }, nil
	case "event":
		return func(text []byte) error { return readEvent(name, text) }, nil
	case "signal":
		return readSignal, nil
	case "instance":
		return readInstance, nil
	case "row":
		return func(text []byte) error { return strictly(text, &sink.Event{}) }, nil
	default:
		return nil, fmt.Errorf("the word behind json is %q: it has to be message ENGINE, setting NAME, event TYPE, instance, signal or row", kind)
	}
}

// strictly decodes one document without unknown members.
func strictly(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is something behind the document")
	}
	return nil
}

// readMessage reads a message of an engine: the envelope, and in it the engine's input.
func readMessage(name string, text []byte) error {
	var m engine.Message
	if err := strictly(text, &m); err != nil {
		return err
	}
	if m.Engine != "" && m.Engine != name {
		return fmt.Errorf("the message is for the engine %s", m.Engine)
	}
	switch name {
	case hmac.Engine:
		_, err := hmac.ParseInput(m.Operation, m.InstanceID, m.Input)
		return err
	case spn.Engine:
		_, err := spn.ParseInput(m.Operation, m.Input)
		return err
	case tls.Engine:
		var in tls.Input
		err := strictly(m.Input, &in)
		if err == nil {
			_, err = in.Names()
		}
		return err
	case update.Engine:
		return strictly(m.Input, &update.Input{})
	case updatepublisher.Engine:
		return optional(m.Input, &updatepublisher.Input{})
	case health.Engine:
		return optional(m.Input, &health.Input{})
	case alerts.Engine:
		_, err := alerts.ParseAlert(m.Input)
		return err
	case provisioning.Engine:
		_, err := provisioning.ParseNotice(m.Input)
		return err
	default:
		return fmt.Errorf("there is no engine %q", name)
	}
}

// optional decodes an input that may be missing.
func optional(text []byte, into any) error {
	if len(text) == 0 {
		return nil
	}
	return strictly(text, into)
}

// readEvent reads the payload of an event.
func readEvent(kind string, text []byte) error {
	switch kind {
	case hmac.EventRotated:
		return strictly(text, &hmac.NotifyOutput{})
	case spn.EventRotated:
		return strictly(text, &spn.Rotated{})
	case spn.EventRetiring:
		return strictly(text, &spn.Retiring{})
	case release.EventAvailable:
		return strictly(text, &release.Notice{})
	case release.EventFinished:
		return strictly(text, &release.Finished{})
	case release.EventHealth:
		return strictly(text, &release.Health{})
	default:
		return fmt.Errorf("there is no event %q", kind)
	}
}

// readSignal reads a signal.
func readSignal(text []byte) error {
	if _, err := orchestrator.DecodeSignal(text); err != nil {
		return err
	}
	return strictly(text, &orchestrator.Signal{})
}

// readSetting lets the handler read a setting, in both profiles: each reads its own. The error names all invalid
// settings, so a deliberately invalid one ends the handler before it accesses storage.
func readSetting(t *testing.T, name, value string) error {
	t.Helper()
	err := readSettingOf(t, "publisher", name, value)
	if name == "ROUNDHOUSE_SCHEDULES" { // it names engines, and the example uses those of the publisher
		return err
	}
	return errors.Join(err, readSettingOf(t, "managed-app", name, value))
}

func readSettingOf(t *testing.T, in, name, value string) error {
	t.Helper()
	const wrong = "ROUNDHOUSE_LOG_LEVEL"
	cmd := exec.CommandContext(t.Context(), build(t).handler)
	cmd.Env = []string{"AzureWebJobsStorage=UseDevelopmentStorage=true", "FUNCTIONS_CUSTOMHANDLER_PORT=1", "ROUNDHOUSE_CONTEXT=" + in, wrong + "=loud", name + "=" + value}
	out, err := cmd.CombinedOutput()
	exit, ended := errors.AsType[*exec.ExitError](err)
	switch {
	case !ended || exit.ExitCode() != 2 || !bytes.Contains(out, []byte(wrong)):
		t.Fatalf("the handler ends with %v and does not complain about %s:\n%s", err, wrong, out)
	case bytes.Contains(out, []byte(name)):
		return fmt.Errorf("the handler refuses it:\n%s", out)
	}
	return nil
}

// readInstance reads the operator's fields of an instance of the registry.
func readInstance(text []byte) error {
	var fields struct {
		TenantID           string                      `json:"tenantId"`
		Ring               string                      `json:"ring"`
		Endpoints          registry.Endpoints          `json:"endpoints"`
		EngineTablesConfig registry.EngineTablesConfig `json:"engineTablesConfig"`
	}
	return errors.Join(strictly(text, &fields), new(registry.Instance).Patch(text))
}
