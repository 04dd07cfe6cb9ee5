package acceptance

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/internal/azurite"
	"github.com/vibedata/roundhouse/internal/localhost"
	"github.com/vibedata/roundhouse/secrets"
)

const (
	// tableDatabase is the file in which Azurite keeps all tables.
	tableDatabase = "__azurite_db_table__.json"
	// queueData is the folder with the texts of queue messages, those that are gone included.
	queueData = "__queuestorage__"
	// fewSecrets is less than the rotations of this test leave.
	fewSecrets = 8
)

// No value of a secret gets into a table, a queue, a blob, a log or an answer of the API, whatever dies or fails.
//
// The table devSecrets is the vault on a developer's machine and the only place where values may be: it is read to know
// what to look for, and left out of the search. That the search finds what is there shows with a canary.
func TestNoSecretIsStoredOrLogged(t *testing.T) {
	t.Setenv("ROUNDHOUSE_LOG_LEVEL", "debug") // the handler inherits both
	t.Setenv("ROUNDHOUSE_ROTATIONS", `{"hmac":[{"instanceId":"instance-scheduled"}]}`)
	data := t.TempDir()
	server, err := azurite.Start(t.Context(), azurite.Config{DataDir: data})
	if err != nil {
		t.Fatal(err)
	}
	var p *platform
	answers := map[string][]byte{}
	canary := uuid.New()
	// It runs when the host has stopped, and the log is still there.
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Fatal(err)
		}
		if p == nil || t.Failed() {
			return
		}
		log, err := os.ReadFile(p.log)
		if err != nil || !bytes.Contains(log, []byte(`"fate":"succeeded"`)) {
			t.Fatalf("the log does not say what happened: %v", err)
		}
		answers["the log"] = log
		values := searchStorage(t, data, canary[:])
		for where, content := range answers {
			reportLeaks(t, where, content, values)
		}
	})
	p = startOver(t, server.Account())
	t.Run("rotation", p.testRotation)
	t.Run("duplicate", p.testDuplicate)
	t.Run("ids", p.testIDs)
	t.Run("dead letters", p.testDeadLetters)
	t.Run("no vault", p.testAlwaysFails)
	t.Run("the host gives up", p.testHostGivesUp)
	t.Run("deaths", p.testDeaths)
	t.Run("schedule", p.testSchedule)
	p.bury(t, base64.StdEncoding.EncodeToString(canary[:]))
	for _, path := range p.readable(t) {
		answers[path] = p.answer(t, path)
	}
}

// readable are paths of the API that show what is stored: lists, the newest of what they list, and what is told of the whole.
func (p *platform) readable(t *testing.T) []string {
	t.Helper()
	paths := []string{"/api/workflow/outbox/metrics", "/api/metrics", "/api/health/full"}
	for list, keys := range map[string][2]string{"/api/history": {"engine", "rowKey"}, "/api/dlq": {"engine", "rowKey"}, "/api/workflow/outbox": {"tenantId", "id"}} {
		items := p.list(t, list, nil)
		if len(items) == 0 {
			t.Fatalf("%s lists nothing", list)
		}
		paths = append(paths, list)
		for _, i := range items {
			paths = append(paths, fmt.Sprintf("%s/%s/%s", list, i[keys[0]], url.PathEscape(fmt.Sprint(i[keys[1]]))))
		}
	}
	return paths
}

// testDeaths kills the handler in the middle of rotations.
func (p *platform) testDeaths(t *testing.T) {
	for _, at := range []int{3, 5, 7} {
		id := uuid.NewString()
		p.proxy.arm(at, after)
		p.send(t, hmac.Queue, rotation(id, "instance-"+id))
		p.succeeded(t, id, "instance-"+id)
	}
	p.proxy.arm(0, "")
}

// testSchedule lets the timer of the rotations fire twice: one rotation.
func (p *platform) testSchedule(t *testing.T) {
	const function = "hmac-schedule-timer"
	ticked := func(i localhost.Invocation) bool { return i.Function == function && i.Err == nil }
	for n := range 2 {
		resp, err := http.Post(p.host.URL()+"/admin/functions/"+function, "application/json", strings.NewReader(`{"input":""}`))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		until(t, "the tick", func() bool { return p.seen(ticked) == n+1 })
	}
	query := url.Values{"instanceId": {"instance-scheduled"}, "operation": {"rotate"}}
	until(t, "the rotation", func() bool { return len(p.list(t, "/api/history", query)) > 0 })
	p.drained(t, hmac.Queue)
	entries := p.list(t, "/api/history", query)
	if len(entries) != 1 {
		t.Fatalf("%d rotations of two ticks, want 1", len(entries))
	}
	p.succeeded(t, fmt.Sprint(entries[0]["correlationId"]), "instance-scheduled")
}

// bury sends a message with a text that gets into the dead letters, where the search has to find it.
func (p *platform) bury(t *testing.T, text string) {
	t.Helper()
	before := len(p.list(t, "/api/dlq", nil))
	p.send(t, hmac.Queue, `{"engine":"hmac","correlationId":"canary","instanceId":"i","input":{"bird":"`+text+`"}}`)
	until(t, "the canary's dead letter", func() bool { return len(p.list(t, "/api/dlq", nil)) > before })
	p.drained(t, hmac.Queue)
}

// answer is what the API says, well or not.
func (p *platform) answer(t *testing.T, path string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.host.URL()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s, %v\n%.500s", path, resp.Status, err, body)
	}
	return body
}

// searchStorage looks for the values of the vault in everything else that a stopped Azurite has stored, and returns them.
func searchStorage(t *testing.T, data string, canary []byte) (values [][]byte) {
	t.Helper()
	stored := map[string][]byte{}
	err := filepath.WalkDir(data, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(data, path)
		if err != nil {
			return err
		}
		stored[filepath.ToSlash(name)], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	stored[tableDatabase], values = openVault(t, stored[tableDatabase])
	if len(values) < fewSecrets {
		t.Fatalf("%d secrets to look for, want %d or more", len(values), fewSecrets)
	}
	inQueues := false
	for name, content := range stored {
		inQueues = inQueues || strings.HasPrefix(name, queueData) && found(content, canary)
		reportLeaks(t, name, content, values)
	}
	if inTables := found(stored[tableDatabase], canary); !inQueues || !inTables {
		t.Errorf("the canary is found in queues: %v, in tables: %v: the search misses what is there", inQueues, inTables)
	}
	return values
}

// openVault takes the vault's table out of the database: rest is all else, with what is compressed in it, and values are
// those of all versions in the vault, disabled ones too.
func openVault(t *testing.T, database []byte) (rest []byte, values [][]byte) {
	t.Helper()
	var file struct{ Collections []json.RawMessage }
	if err := json.Unmarshal(database, &file); err != nil {
		t.Fatalf("%s: %v", tableDatabase, err)
	}
	for _, collection := range file.Collections {
		var table struct {
			Name string
			Data []struct{ Properties struct{ Value any } }
		}
		if err := json.Unmarshal(collection, &table); err != nil {
			t.Fatalf("%s: %v", tableDatabase, err)
		}
		if !strings.HasSuffix(table.Name, "$"+secrets.DevelopmentTable) {
			rest = append(append(rest, collection...), inflated(t, collection)...)
			continue
		}
		for _, row := range table.Data {
			text, _ := row.Properties.Value.(string)
			value, err := base64.StdEncoding.DecodeString(text)
			if err != nil || len(value) < 16 {
				t.Fatalf("a row of the vault has %d bytes, %v: no value, or one that would be found anywhere", len(value), err)
			}
			values = append(values, value)
		}
	}
	return rest, values
}

// inflated is what the strings of a document hold that are compressed, as long rounds of orchestrations are.
func inflated(t *testing.T, document []byte) (all []byte) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(document))
	for {
		token, err := d.Token()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		text, _ := token.(string)
		packed, err := base64.StdEncoding.DecodeString(text)
		if err != nil || len(packed) == 0 {
			continue
		}
		if plain, err := io.ReadAll(flate.NewReader(bytes.NewReader(packed))); err == nil {
			all = append(all, plain...)
		}
	}
}

// reportLeaks fails the test where a value is found, without telling it.
func reportLeaks(t *testing.T, where string, content []byte, values [][]byte) {
	t.Helper()
	for i, value := range values {
		if found(content, value) {
			t.Errorf("%s holds the value of a secret (number %d of the vault)", where, i)
		}
	}
}

// found looks for a value as it is, in hexadecimal digits and in base64, and for all of these in base64 once more, as the
// texts of queue messages and binary columns have it.
func found(content, value []byte) bool {
	digits := hex.EncodeToString(value)
	forms := [][]byte{value, []byte(digits), []byte(strings.ToUpper(digits)), []byte(base64.RawStdEncoding.EncodeToString(value)),
		[]byte(base64.RawURLEncoding.EncodeToString(value))}
	for _, form := range forms {
		if bytes.Contains(content, form) {
			return true
		}
		for before := range 3 {
			if bytes.Contains(content, within(form, before)) {
				return true
			}
		}
	}
	return false
}

// within is the part of the base64 of a longer text that depends on form alone, where it begins behind so many bytes,
// modulo 3.
func within(form []byte, before int) []byte {
	skip := (3 - before) % 3
	whole := form[skip : len(form)-(len(form)-skip)%3]
	return []byte(base64.StdEncoding.EncodeToString(whole))
}

// TestFound looks for a value in the forms in which it could leak.
func TestFound(t *testing.T) {
	t.Parallel()
	value := []byte("\xff\xfe0123456789abcdef?>~~")
	base := base64.StdEncoding.EncodeToString
	forms := map[string]string{"raw": string(value), "base64": base(value), "URLs": base64.URLEncoding.EncodeToString(value),
		"hex": hex.EncodeToString(value), "upper-case hex": strings.ToUpper(hex.EncodeToString(value))}
	for name, form := range forms {
		for _, before := range []string{"", "a", "ab", "abc"} {
			for _, after := range []string{"", "z", "yz"} {
				text := before + form + after
				if !found([]byte(text), value) || !found([]byte(base([]byte(text))), value) {
					t.Errorf("%s between %q and %q is not found", name, before, after)
				}
			}
		}
	}
	if other := []byte("\xff\xfe0123456789abcdeg?>~~"); found([]byte(base(other)+string(other)), value) {
		t.Error("another value is found")
	}
}
