package entraid_test

import (
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/internal/entraid"
)

const id = "0ac4e6f0-1111-4222-8333-aabbccddeeff"

func TestParse(t *testing.T) {
	t.Parallel()
	plain := strings.ReplaceAll(id, "-", "")
	for _, text := range []string{id, strings.ToUpper(id), "{" + id + "}", "(" + strings.ToUpper(id) + ")", " " + id + "\r\n", "urn:uuid:" + id, "URN:UUID:" + id, plain, "{ " + plain + " }"} {
		if got, err := entraid.Parse(text); got != id || err != nil {
			t.Errorf("%q: %q, %v", text, got, err)
		}
		if !entraid.Same(text, id) || entraid.Audience(text) != id {
			t.Errorf("%q: %q as an audience", text, entraid.Audience(text))
		}
	}
	for _, text := range []string{"", "common", "contoso.onmicrosoft.com", id[1:], id + "0", `"` + id + `"`, "x" + id + "x", "{" + id, id + "}", "{{" + id + "}}", "api://" + id,
		"00000000-0000-0000-0000-000000000000", strings.Replace(id, "-", "_", 1), strings.Replace(id, "a", "g", 1), "\ufeff" + id} {
		if got, err := entraid.Parse(text); err == nil {
			t.Errorf("%q: %q", text, got)
		}
	}
}

func TestApplication(t *testing.T) {
	t.Parallel()
	for _, text := range []string{id, "api://" + strings.ToUpper(id), "API://" + id + "/", " api://{" + id + "}"} {
		if got, err := entraid.Application(text); got != id || err != nil {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "api://", "api://contoso.com/app", "https://" + id, "api://" + id + "/access"} {
		if got, err := entraid.Application(text); err == nil {
			t.Errorf("%q: %q", text, got)
		}
	}
}

func TestAudience(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"API://" + strings.ToUpper(id) + "/": id, "api://" + id + "/access": "api://" + id + "/access", "https://Contoso.COM/App/": "https://contoso.com/App",
		"api://contoso.com/" + id: "api://contoso.com/" + id, " name ": "name", "https://contoso.com": "https://contoso.com"} {
		if got := entraid.Audience(text); got != want || entraid.Audience(got) != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// A parsed id parses to itself, and is the same as the text.
func FuzzParse(f *testing.F) {
	f.Add(id)
	f.Add("{" + id + "}")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := entraid.Parse(text)
		if err != nil {
			return
		}
		if again, err := entraid.Parse(got); err != nil || again != got || !entraid.Same(text, got) || len(got) != 36 {
			t.Errorf("%q: %q, %q, %v", text, got, again, err)
		}
	})
}
