package redact

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/vibedata/roundhouse/internal/redact/redacttest"
)

// formsOf returns each form with each name of a secret.
func formsOf(seed uint64) []redacttest.Sample {
	var list []redacttest.Sample
	for _, f := range redacttest.Syntaxes() {
		for i, name := range redacttest.Names() {
			list = append(list, f.With(name, redacttest.Secret(seed+uint64(i))))
		}
	}
	for _, f := range redacttest.Marked() {
		list = append(list, f.With("", redacttest.Secret(seed)))
	}
	return list
}

// TestForms combines each form with each of the surroundings.
func TestForms(t *testing.T) {
	t.Parallel()
	for _, s := range formsOf(1) {
		for _, wrap := range redacttest.Wraps() {
			text := wrap.Of(s.Text)
			check(t, s, wrap.Name, Text(text))
			if doc := []byte(text); json.Valid(doc) {
				check(t, s, wrap.Name+" as JSON", string(JSON(doc)))
			}
		}
	}
}

// TestFormsAtRandom nests random secrets in random surroundings.
func TestFormsAtRandom(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.SampledFrom(formsOf(rapid.Uint64().Draw(t, "seed"))).Draw(t, "form")
		text := s.Text
		for _, wrap := range rapid.SliceOfN(rapid.SampledFrom(redacttest.Wraps()), 0, 2).Draw(t, "wraps") {
			text = wrap.Of(text)
		}
		got := Text(text)
		if part := s.FoundIn(got); part != "" {
			t.Fatalf("%q of the secret is left in %q of %q", part, got, text)
		}
		if again := Text(got); again != got {
			t.Fatalf("%q became %q, and that %q", text, got, again)
		}
		if doc := []byte(text); json.Valid(doc) {
			clean := JSON(doc)
			if part := s.FoundIn(string(clean)); part != "" || !json.Valid(clean) {
				t.Fatalf("%q of the secret is left in %s", part, clean)
			}
		}
	})
}

// TestReadable checks texts of the project for false alarms.
func TestReadable(t *testing.T) {
	t.Parallel()
	for _, text := range redacttest.Readable() {
		for _, wrap := range redacttest.Wraps() {
			if wrapped := wrap.Of(text); Text(wrapped) != wrapped {
				t.Errorf("%s: %q became %q", wrap.Name, wrapped, Text(wrapped))
			}
		}
		doc, _ := json.Marshal(map[string]string{"message": text})
		if got := JSON(doc); string(got) != string(doc) && !strings.Contains(text, mark) {
			t.Errorf("%s became %s", doc, got)
		}
	}
}
