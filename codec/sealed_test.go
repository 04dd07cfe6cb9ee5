package codec_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/codec"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

const (
	table     = "runs"
	container = "runs"
	queue     = "runs"
	marker    = "MARKER-4111-1111"
)

// house is one storage account, for programs with and without encryption.
type house struct {
	vault  *vault
	tables *tables.Memory
	queues *queues.Memory
	blobs  *blobs.Memory
}

func newHouse(t testing.TB) house {
	t.Helper()
	h := house{newVault(), tables.NewMemory(), queues.NewMemory(), blobs.NewMemory()}
	testenv.OK(t, errors.Join(h.tables.CreateTable(t.Context(), table), h.queues.CreateQueue(t.Context(), queue), h.blobs.CreateContainer(t.Context(), container)))
	return h
}

// program is the configuration of one process.
func (h house) program(t testing.TB, readOnly bool) codec.Config {
	t.Helper()
	return codec.Config{Codec: envelope(t, codec.EnvelopeConfig{Keys: h.vault}), ReadOnly: readOnly, Clear: map[string][]string{table: {"Name"}},
		Containers: []string{container}, Queue: func(name string) bool { return name == queue }}
}

func row(key string, properties map[string]any) tables.Entity {
	return tables.Entity{Key: tables.Key{Partition: "p", Row: key}, Properties: properties}
}

// texts returns a row with a value of each kind.
func texts() map[string]any {
	at := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	return map[string]any{"Name": "n", "Payload": marker, "Payload2": marker, "Data": []byte(marker), "Empty": "", "None": []byte{}, "Count": int64(3), "Is": true, "At": at, "Share": 0.5}
}

// Programs with and without encryption write alternately, and each reads all of it.
func TestMixedData(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	programs := []codec.Config{h.program(t, true), h.program(t, false), h.program(t, true)}
	for i, p := range programs {
		name := string(rune('a' + i))
		_, sent := p.Queues(h.queues).Send(t.Context(), queue, []byte(marker), 0)
		if err := errors.Join(sent, p.Tables(h.tables).Apply(t.Context(), table, tables.Insert(row(name, texts()))),
			p.Blobs(h.blobs).Put(t.Context(), container, name, []byte(marker))); err != nil {
			t.Fatal(err)
		}
	}
	for i := range programs {
		p := h.program(t, i == 0) // a process that has encrypted nothing itself
		page, err := p.Tables(h.tables).Query(t.Context(), table, tables.Query{Partition: "p"})
		if err != nil || len(page.Entities) != 3 {
			t.Fatalf("%d rows, %v", len(page.Entities), err)
		}
		for _, e := range page.Entities {
			testenv.Equal(t, "row "+e.Row, texts(), e.Properties)
			data, err := p.Blobs(h.blobs).Get(t.Context(), container, e.Row)
			if err != nil || string(data) != marker {
				t.Errorf("blob %s: %q, %v", e.Row, data, err)
			}
		}
	}
	got, err := h.program(t, true).Queues(h.queues).Receive(t.Context(), queue, 32, time.Minute)
	if err != nil || len(got) != 3 {
		t.Fatalf("%d messages, %v", len(got), err)
	}
	for _, m := range got {
		if body := queues.Decode(m.Text); string(body) != marker {
			t.Errorf("message %q", body)
		}
	}
}

// Storage holds no payload except for columns in clear.
func TestNothingInClear(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	p := h.program(t, false)
	_, sent := p.Queues(h.queues).Send(t.Context(), queue, []byte(marker), 0)
	testenv.OK(t, errors.Join(sent, p.Tables(h.tables).Apply(t.Context(), table, tables.Upsert(row("r", texts()))), p.Blobs(h.blobs).Put(t.Context(), container, "b", []byte(marker))))
	e := testenv.Must(h.tables.Get(t.Context(), table, tables.Key{Partition: "p", Row: "r"}))(t)
	for _, name := range []string{"Payload", "Payload2", "Data"} {
		if _, there := e.Properties[name]; there {
			t.Errorf("the column %s is there", name)
		}
	}
	if e.String("Name") != "n" || e.Int("Count") != 3 || bytes.Contains(e.Bytes("Sealed"), []byte(marker)) {
		t.Errorf("%v", e.Properties)
	}
	data, err := h.blobs.Get(t.Context(), container, "b")
	if err != nil || bytes.Contains(data, []byte(marker)) {
		t.Errorf("%q, %v", data, err)
	}
	got, err := h.queues.Receive(t.Context(), queue, 1, time.Minute)
	if err != nil || len(got) != 1 || bytes.Contains(queues.Decode(got[0].Text), []byte(marker)) {
		t.Fatalf("%v, %v", got, err)
	}
	raw, _ := base64.StdEncoding.DecodeString(got[0].Text)
	if bytes.Contains(raw, []byte(marker)) {
		t.Errorf("%q", raw)
	}
	// A trigger delivers the text as it is, or decoded.
	for _, form := range [][]byte{[]byte(got[0].Text), raw} {
		if body, err := p.Message(t.Context(), form); err != nil || string(body) != marker {
			t.Errorf("%q, %v", body, err)
		}
	}
	for _, foreign := range []string{"", "{}", "j1JI", "j1JIUAE=", "j1JI!", base64.StdEncoding.EncodeToString([]byte(`{"a":1}`))} {
		body, err := p.Message(t.Context(), []byte(foreign))
		if sealed := foreign == "j1JIUAE="; sealed != errors.Is(err, codec.ErrDamaged) || !sealed && string(body) != foreign {
			t.Errorf("%s: %q, %v", foreign, body, err)
		}
	}
}

// A query returns the selected columns, and no others.
func TestSelectedColumns(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	p := h.program(t, false)
	store := p.Tables(h.tables)
	testenv.OK(t, store.Apply(t.Context(), table, tables.Insert(row("r", texts()))))
	for _, c := range []struct{ ask, want []string }{
		{[]string{"Name"}, []string{"Name"}},
		{[]string{"Count"}, []string{"Count"}},
		{[]string{"Payload", "Count"}, []string{"Payload", "Count"}},
		{[]string{"Data", "Missing"}, []string{"Data"}},
	} {
		want := map[string]any{}
		for _, name := range c.want {
			want[name] = texts()[name]
		}
		page, err := store.Query(t.Context(), table, tables.Query{Partition: "p", Select: c.ask})
		scanned, scanErr := store.Scan(t.Context(), table, tables.Scan{Row: "r", Select: c.ask})
		testenv.OK(t, errors.Join(err, scanErr))
		for _, e := range append(page.Entities, scanned.Entities...) {
			testenv.Equal(t, strings.Join(c.ask, " "), want, e.Properties)
		}
	}
	for name, refused := range map[string]bool{"Payload": true, "Name": false} {
		_, err := store.Query(t.Context(), table, tables.Query{Partition: "p", Where: map[string]any{name: "n"}})
		if errors.Is(err, tables.ErrInvalid) != refused {
			t.Errorf("where %s: %v", name, err)
		}
	}
}

// A value in the place of another one is refused.
func TestMovedData(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	p := h.program(t, false)
	testenv.OK(t, errors.Join(p.Tables(h.tables).Apply(t.Context(), table, tables.Insert(row("a", texts()))), p.Blobs(h.blobs).Put(t.Context(), container, "a", []byte(marker))))
	e, err := h.tables.Get(t.Context(), table, tables.Key{Partition: "p", Row: "a"})
	data, blobErr := h.blobs.Get(t.Context(), container, "a")
	e.Row = "b"
	testenv.OK(t, errors.Join(err, blobErr, h.tables.Apply(t.Context(), table, tables.Insert(e)), h.blobs.Put(t.Context(), container, "b", data)))
	_, rowErr := p.Tables(h.tables).Get(t.Context(), table, e.Key)
	_, blobErr = p.Blobs(h.blobs).Get(t.Context(), container, "b")
	for what, err := range map[string]error{"row": rowErr, "blob": blobErr} {
		if !errors.Is(err, codec.ErrDamaged) || errors.Is(err, tables.ErrNotFound) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Without the key, nothing is read or lost, and no error is one of storage.
func TestWithoutTheKey(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	p := h.program(t, false)
	_, sent := p.Queues(h.queues).Send(t.Context(), queue, []byte(marker), 0)
	testenv.OK(t, errors.Join(sent, p.Tables(h.tables).Apply(t.Context(), table, tables.Insert(row("a", texts()))), p.Blobs(h.blobs).Put(t.Context(), container, "a", []byte(marker))))
	h.vault.fail(errVault)
	other := h.program(t, false)
	_, get := other.Tables(h.tables).Get(t.Context(), table, tables.Key{Partition: "p", Row: "a"})
	_, query := other.Tables(h.tables).Query(t.Context(), table, tables.Query{Partition: "p"})
	_, scan := other.Tables(h.tables).Scan(t.Context(), table, tables.Scan{Row: "a"})
	_, blob := other.Blobs(h.blobs).Get(t.Context(), container, "a")
	_, send := other.Queues(h.queues).Send(t.Context(), queue, []byte("x"), 0)
	_, receive := other.Queues(h.queues).Receive(t.Context(), queue, 32, time.Second)
	for what, err := range map[string]error{"get": get, "query": query, "scan": scan, "blob": blob, "send": send, "receive": receive,
		"apply": other.Tables(h.tables).Apply(t.Context(), table, tables.Upsert(row("a", texts()))), "put": other.Blobs(h.blobs).Put(t.Context(), container, "a", nil),
		"putIf": other.Blobs(h.blobs).PutIf(t.Context(), container, "c", nil, "")} {
		if !errors.Is(err, codec.ErrKey) {
			t.Errorf("%s: %v", what, err)
		}
		for _, storage := range []error{tables.ErrNotFound, tables.ErrExists, tables.ErrPrecondition, tables.ErrTooLarge, tables.ErrInvalid, tables.ErrThrottled, tables.ErrOutcomeUnknown} {
			if errors.Is(err, storage) {
				t.Errorf("%s: %v is %v", what, err, storage)
			}
		}
	}
	// Data that needs no key is still read: columns in clear, other tables, and messages in clear among unreadable ones.
	if page, err := other.Tables(h.tables).Query(t.Context(), table, tables.Query{Partition: "p", Select: []string{"Name"}}); err != nil || len(page.Entities) != 1 {
		t.Errorf("columns in clear: %v", err)
	}
	h.vault.fail(nil)
	if n, err := h.queues.Length(t.Context(), queue); err != nil || n != 1 {
		t.Errorf("%d messages, %v", n, err)
	}
	if e, err := h.program(t, true).Tables(h.tables).Get(t.Context(), table, tables.Key{Partition: "p", Row: "a"}); err != nil || e.String("Payload") != marker {
		t.Errorf("%v, %v", e, err)
	}
}

// An unreadable message does not block other messages.
func TestUnreadableMessage(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	testenv.Must(h.program(t, false).Queues(h.queues).Send(t.Context(), queue, []byte(marker), 0))(t)
	testenv.Must(h.queues.Send(t.Context(), queue, []byte("in clear"), 0))(t)
	h.vault.fail(errVault)
	got, err := h.program(t, true).Queues(h.queues).Receive(t.Context(), queue, 32, time.Minute)
	if err != nil || len(got) != 1 || string(queues.Decode(got[0].Text)) != "in clear" {
		t.Errorf("%v, %v", got, err)
	}
}

// Data that fits in clear also fits encrypted: rows and messages at their limits, with texts that compress as badly as
// texts can, and with the longest keys.
func TestSizes(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.vault.rename(strings.Repeat("k", codec.MaxKeyID))
	h.vault.padding = codec.MaxWrapped - 60 // nonce, key and tag
	p := h.program(t, false)
	for name, alphabet := range alphabets() {
		for _, n := range []int{queues.MaxBody - 1, queues.MaxBody, queues.MaxBody + 1} {
			body := randomText(alphabet, n)
			_, clear := h.queues.Send(t.Context(), queue, []byte(body), 0)
			_, err := p.Queues(h.queues).Send(t.Context(), queue, []byte(body), 0)
			if errors.Is(err, queues.ErrTooLarge) != errors.Is(clear, queues.ErrTooLarge) || (err == nil) != (clear == nil) {
				t.Errorf("%s: message of %d bytes: %v, in clear %v", name, n, err, clear)
			}
		}
		for _, units := range []int{32<<10 - 1, 32 << 10, 32<<10 + 1} {
			props := map[string]any{}
			for _, column := range []string{"A", "B", "C"} {
				props[column] = randomUnits(alphabet, units)
			}
			clear := h.tables.Apply(t.Context(), table, tables.Upsert(row("clear", props)))
			err := p.Tables(h.tables).Apply(t.Context(), table, tables.Upsert(row("sealed", props)))
			if errors.Is(err, tables.ErrTooLarge) != errors.Is(clear, tables.ErrTooLarge) || (err == nil) != (clear == nil) {
				t.Errorf("%s: columns of %d units: %v, in clear %v", name, units, err, clear)
			}
		}
	}
	// A round that fills its row: 13 binary columns of 64 KiB that do not compress.
	props := map[string]any{}
	for i := range 13 {
		data := make([]byte, 64<<10)
		for j := range data {
			data[j] = byte(rand.N(256))
		}
		props[strings.Repeat("D", i+1)] = data
	}
	if err := p.Tables(h.tables).Apply(t.Context(), table, tables.Upsert(row("round", props)), tables.Upsert(row("status", texts()))); err != nil {
		t.Errorf("a full round: %v", err)
	}
	got, err := p.Tables(h.tables).Get(t.Context(), table, tables.Key{Partition: "p", Row: "round"})
	if diff := cmp.Diff(props, got.Properties); err != nil || diff != "" {
		t.Errorf("a full round, %v", err)
	}
}

// alphabets returns the character sets of texts that JSON can hold.
func alphabets() map[string][]rune {
	return map[string][]rune{"digits": span('0', '9'), "base64": append(append(span('a', 'z'), span('A', 'Z')...), span('/', '9')...), "ascii": span(0x20, 0x7e),
		"two bytes": span(0x80, 0x7ff), "three bytes": span(0x800, 0xd7ff), "four bytes": span(0x10000, 0x10ffff), "all": append(append(span(0x20, 0xd7ff), span(0xe000, 0xffff)...), span(0x10000, 0x10ffff)...),
		"mixed lengths": append(append(append(span(0x20, 0x7e), span(0x80, 0xff)...), span(0x800, 0x83f)...), span(0x10000, 0x1003f)...)}
}

func span(from, to rune) []rune {
	var out []rune
	for r := from; r <= to; r++ {
		out = append(out, r)
	}
	return out
}

// randomText returns a text of n bytes.
func randomText(alphabet []rune, n int) string {
	var b strings.Builder
	for b.Len() < n-4 {
		b.WriteRune(alphabet[rand.N(len(alphabet))])
	}
	return b.String() + strings.Repeat("x", n-b.Len())
}

// randomUnits returns a text of n UTF-16 units.
func randomUnits(alphabet []rune, n int) string {
	var b strings.Builder
	for n > 1 {
		r := alphabet[rand.N(len(alphabet))]
		b.WriteRune(r)
		n--
		if r > 0xffff {
			n--
		}
	}
	return b.String() + strings.Repeat("x", n)
}

// A program without the key reads the columns in clear and the key's id for encrypted ones; it cannot change those
// rows.
func TestOpaque(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	if err := errors.Join(h.program(t, false).Tables(h.tables).Apply(t.Context(), table, tables.Insert(row("sealed", texts()))),
		h.tables.Apply(t.Context(), table, tables.Insert(row("clear", texts())))); err != nil {
		t.Fatal(err)
	}
	store := codec.Opaque(h.tables, map[string]codec.Cover{table: func(_ tables.Entity, id string) map[string]any {
		return map[string]any{"Payload": "[encrypted, key " + id + "]"}
	}})
	page, err := store.Query(t.Context(), table, tables.Query{Partition: "p"})
	scanned, scanErr := store.Scan(t.Context(), table, tables.Scan{Row: "sealed"})
	got, getErr := store.Get(t.Context(), table, tables.Key{Partition: "p", Row: "sealed"})
	testenv.OK(t, errors.Join(err, scanErr, getErr))
	for _, e := range append(append(page.Entities, scanned.Entities...), got) {
		want := map[string]string{"sealed": "[encrypted, key payloads/1]", "clear": marker}[e.Row]
		if e.String("Payload") != want || e.String("Name") != "n" {
			t.Errorf("%s: %v", e.Row, e.Properties)
		}
		e.Properties["Name"] = "m"
		err := store.Apply(t.Context(), table, tables.Replace(e))
		if sealed := e.Row == "sealed"; sealed != errors.Is(err, codec.ErrSealed) || !sealed && err != nil && !errors.Is(err, tables.ErrPrecondition) {
			t.Errorf("change of %s: %v", e.Row, err)
		}
	}
	if err := store.Apply(t.Context(), table, tables.Delete(got.Key, "")); err != nil {
		t.Error(err)
	}
}

// A hidden message is encrypted like any other, also after an update of its body.
func TestHiddenMessagesAreSealed(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	p := h.program(t, false).Queues(h.queues)
	sent, err := p.SendHidden(t.Context(), queue, []byte(marker), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{marker, marker + marker} {
		if want == marker {
			sent.PopReceipt, err = p.Renew(t.Context(), queue, sent.ID, sent.PopReceipt, 0)
		} else {
			sent.PopReceipt, err = p.Update(t.Context(), queue, sent.ID, sent.PopReceipt, []byte(want), 0)
		}
		if err != nil {
			t.Fatal(err)
		}
		raw, err := h.queues.Receive(t.Context(), queue, 32, time.Hour)
		if err != nil || len(raw) != 1 {
			t.Fatalf("%d messages, %v", len(raw), err)
		}
		sent.PopReceipt = raw[0].PopReceipt
		body := queues.Decode(raw[0].Text)
		if bytes.Contains(body, []byte(marker)) {
			t.Errorf("in storage there is %q", body)
		}
		if plain, err := h.program(t, true).Message(t.Context(), body); err != nil || string(plain) != want {
			t.Errorf("it says %q, %v", plain, err)
		}
	}
	if _, err := p.SendHidden(t.Context(), queue, nil, time.Hour); !errors.Is(err, queues.ErrInvalid) {
		t.Errorf("an empty body: %v", err)
	}
}
