package acceptance

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/azurite"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/services/certificates"
	"github.com/vibedata/roundhouse/services/secrets"
)

const (
	// tableDatabase is the file in which Azurite keeps all tables.
	tableDatabase = "__azurite_db_table__.json"
	// queueData and blobData are the folders with the texts of queue messages, deleted ones included, and of blobs.
	queueData = "__queuestorage__"
	blobData  = "__blobstorage__"
)

// search searches all stored, logged, returned and sent data of a platform for the values of secrets. No value may
// occur, regardless of deaths and failures.
//
// The tables devSecrets and devCertificates are the vault on a developer's machine and the only place where values may
// be: they supply the values, and are left out of the search. A canary proves that the search works: a harmless text
// that is sent to every place where secrets must not be.
type search struct {
	server *azurite.Server
	data   string
	canary []byte
	// fewest is the minimum number of values in the vault; 0 if it is not in this storage.
	fewest int
	// hostLog is the log of the local host.
	hostLog *slog.Logger

	hostText lockedBuffer
	handler  string // its log file
	seen     map[string][]byte
	values   [][]byte
	mute     map[string]bool // places without the canary
}

// lockedBuffer is a buffer with concurrent writers.
type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

// Write implements io.Writer.
func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

// beginSearch starts the storage of a platform. The search starts when the test and the platform have ended.
func beginSearch(t *testing.T, fewest int) *search {
	t.Helper()
	id := uuid.New()
	s := &search{data: t.TempDir(), canary: id[:], fewest: fewest, seen: map[string][]byte{}, mute: map[string]bool{}}
	s.hostLog = slog.New(slog.NewJSONHandler(&s.hostText, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s.server = testenv.Must(azurite.Start(t.Context(), azurite.Config{DataDir: s.data}))(t)
	t.Cleanup(func() {
		testenv.OK(t, s.server.Close())
		if !t.Failed() {
			s.run(t)
		}
	})
	return s
}

// bird returns the canary as a text.
func (s *search) bird() string { return base64.StdEncoding.EncodeToString(s.canary) }

// collect collects all readable data of the platform, and the secrets and received data of the other services.
func (s *search) collect(t *testing.T, p *platform, known [][]byte, heard []byte) {
	t.Helper()
	p.bury(t, hex.EncodeToString(s.canary), s.bird())
	s.handler = p.log
	_, key, _ := p.account.SharedKey()
	s.values = append(append(s.values, known...), []byte(p.key), []byte(key))
	s.seen["what others heard"], s.mute["what others heard"] = heard, true
	var answers bytes.Buffer
	for _, path := range p.readable(t) {
		answers.Write(testenv.Await(t, "an answer to GET "+path, func() (body []byte, ok bool) {
			var status int
			if status, body = p.ask(t, http.MethodGet, path, nil, nil); status != http.StatusOK && status != http.StatusServiceUnavailable {
				t.Fatalf("GET %s: %d\n%.500s", path, status, body)
			}
			return body, status == http.StatusOK // an overloaded app asks its caller to retry
		}))
	}
	s.seen["the answers of the API"] = answers.Bytes()
}

// run searches after everything has ended.
func (s *search) run(t *testing.T) {
	log := testenv.Must(os.ReadFile(s.handler))(t)
	s.seen["the log"] = log
	s.seen["the host's log"], s.mute["the host's log"] = s.hostText.Bytes(), true
	if len(s.hostText.Bytes()) == 0 {
		t.Error("the host has logged nothing")
	}
	s.readStorage(t)
	for where, content := range s.seen {
		if !s.mute[where] && !found(content, s.canary) {
			t.Errorf("the canary is not found in %s: the search misses what is there", where)
		}
		for i, value := range s.values {
			if found(content, value) {
				t.Errorf("%s: it holds the value of a secret (number %d of %d, %d bytes)", where, i, len(s.values), len(value))
			}
		}
	}
}

// readStorage reads all data of a stopped Azurite, apart from the vault.
func (s *search) readStorage(t *testing.T) {
	t.Helper()
	folders := map[string]string{queueData: "the queues", blobData: "the blobs"}
	err := filepath.WalkDir(s.data, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(s.data, path)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		if name == tableDatabase {
			s.openVault(t, content)
			return err
		}
		folder, _, _ := strings.Cut(filepath.ToSlash(name), "/")
		where, known := folders[folder]
		if !known {
			where, s.mute[name] = name, true
		}
		s.seen[where] = append(s.seen[where], content...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// openVault removes the tables of the vault from the database and returns their values in all versions, disabled ones
// too. The rest is to be searched, after inflating compressed data such as long rounds of orchestrations.
func (s *search) openVault(t *testing.T, database []byte) {
	t.Helper()
	var file struct{ Collections []json.RawMessage }
	if err := json.Unmarshal(database, &file); err != nil {
		t.Fatalf("%s: %v", tableDatabase, err)
	}
	var rest, compressed []byte
	values := 0
	for _, collection := range file.Collections {
		var table struct {
			Name string
			Data []struct{ Properties struct{ Value, Key any } }
		}
		if err := json.Unmarshal(collection, &table); err != nil {
			t.Fatalf("%s: %v", tableDatabase, err)
		}
		_, name, _ := strings.Cut(table.Name, "$")
		if name != secrets.DevelopmentTable && name != certificates.DevelopmentTable {
			rest, compressed = append(rest, collection...), append(compressed, inflated(t, collection)...)
			continue
		}
		for _, row := range table.Data {
			text, ok := row.Properties.Value.(string)
			if !ok {
				text, _ = row.Properties.Key.(string)
			}
			value, err := base64.StdEncoding.DecodeString(text)
			if err != nil || len(value) < 16 {
				t.Fatalf("a row of %s has %d bytes, %v: no value, or one that would be found anywhere", name, len(value), err)
			}
			values++
			s.values = append(s.values, parts(t, value)...)
		}
	}
	s.seen["the tables"], s.seen["what is compressed in the tables"] = rest, compressed
	if values < s.fewest || s.fewest == 0 && values != 0 {
		t.Errorf("%d values in the vault, want %d or more, and none if it is elsewhere", values, s.fewest)
	}
}

// readable returns the paths of the API that show stored data: lists, their items, and the totals.
func (p *platform) readable(t *testing.T) []string {
	t.Helper()
	paths := []string{"/api/workflow/outbox/metrics", "/api/metrics", "/api/health/full", "/api/dlq/groups", "/api/dlq/counts"}
	for list, keys := range map[string][2]string{"/api/history": {"engine", "rowKey"}, "/api/dlq": {"engine", "rowKey"}, "/api/workflow/outbox": {"tenantId", "id"}} {
		query := url.Values{"limit": {"100"}}
		if keys[0] == "tenantId" {
			query = url.Values{"pageSize": {"100"}}
		}
		items := p.list(t, list, query)
		if len(items) == 0 {
			t.Fatalf("%s lists nothing", list)
		}
		paths = append(paths, list+"?"+query.Encode())
		timelines := map[string]bool{}
		for _, i := range items {
			paths = append(paths, fmt.Sprintf("%s/%s/%s", list, i[keys[0]], url.PathEscape(fmt.Sprint(i[keys[1]]))))
			if id, _ := i["correlationId"].(string); list == "/api/history" {
				timelines["/api/timeline/"+url.PathEscape(id)] = true
			}
		}
		for path := range maps.Keys(timelines) {
			paths = append(paths, path)
		}
	}
	return paths
}

// bury sends a message with a text that is stored in the rounds of an orchestration, and then in the dead letters.
func (p *platform) bury(t *testing.T, correlationID, text string) {
	t.Helper()
	song := strings.Repeat("la ", 500) // long enough to be compressed
	body := alarms.message(t, engine.Message{CorrelationID: correlationID, Operation: "sing", Input: fmt.Appendf(nil, `{"bird":%q,"song":%q}`, text, song)})
	p.send(t, alarms.queue, body)
	p.buried(t, grave{entrance: alarms, correlationID: correlationID, body: body, reason: `the operation "sing"`, count: 1})
}

// inflated returns the compressed strings of a document in clear.
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
