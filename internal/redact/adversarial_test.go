package redact

import (
	b64 "encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/internal/testenv"
)

// adversarial returns texts that make a rule start repeatedly without a match.
func adversarial() []string {
	var list []string
	for _, t := range tokens {
		list = append(list, t.prefix)
	}
	for _, m := range markedSecrets {
		list = append(list, m.marker)
	}
	return append(list,
		"a", "eyJ", "eyJ-", "ABSK/", "AIza-", "AKIA+", "eyJhbGciOiJ", "eyJhbGciOi.", "Bearer ", "basic ", "SharedKey a", "=", "==", "a=", "a==", "password=", "password =", `password="`, `password="\`,
		`"password":"`, `"password":`, `"password" `, `\"password\":\"`, `\\\"token\\\":\\\"`, `\`, `\"`, `"`, "'", `"a":`, "password: ", "password:", "cookie: ",
		";password=a ", ";password= ", "--password ", "--password", "-", "--", "<password>", "<password>a", ">", "<a>", "://", "a://", "a://b:", "://a:b", "://a:b@", "@", "@/", "@//", "a@b(",
		"a:b@c(", ":@/", "PRIVATE KEY", "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "-----BEGIN ", "BEGIN PRIVATE", "%3D", "password%3D", "%3Aa", "%20", "+", " ", "\n", ":AA", "1:AA", "12345678:AA",
		strings.Repeat("A", 86)+"==", strings.Repeat("A", 85)+"==", strings.Repeat("a", 64)+"=", "{",
		"key=", `"key":"`, `"key" `, `"password":[`, `"password":{"`, `"password":[]`, `("password",`, `"value":"a","name":"password",`, `"name":"password",`, `name="password" `, "password is ", "password", "secret ", "API key ",
		"<password><![CDATA[", "<password a", "<password>a</password", "-u", "-ua:", ".-p", "-p ", "-pA1b", "&quot;", "&#61;", "&amp;", "%25", "%2525", `\u0070`, `\\`, "password%25", "cGFzc3dvcmQ9", "cGFzc3dvcmQ9YWJj=", b64.StdEncoding.EncodeToString([]byte("%2525252525252525+%2525252525252525\\\\"))+" ", "+", "a+",
		"-----END ", "PuTTY-User-Key-File-2", "$apr1$", "auth plain ", "x-token: a=b,", `x-token: a="`, "signature: v1,", "ｐ", "passwоrd=", "\u200b", "N'", "password=N'", "https://A1b2c3d4@", "[", `{"a":`, "ü", "\xff", "hooks.slack.com/services/",
	)
}

func repeated(unit string, size int) string { return strings.Repeat(unit, size/len(unit)+1) }

// TestAdversarialTexts checks the growth of texts; BenchmarkAdversarial checks the work.
func TestAdversarialTexts(t *testing.T) {
	t.Parallel()
	for _, unit := range adversarial() {
		text := repeated(unit, 16<<10)
		for _, text := range []string{text, "x" + text, "password=" + text, text + "!"} {
			once := Text(text)
			if len(once) > len(text)*(len(mark)+3) {
				t.Errorf("%d bytes of %q became %d", len(text), unit, len(once))
			}
			if Text(once) != once {
				t.Errorf("%q repeated changes again", unit)
			}
		}
	}
}

// BenchmarkAdversarial compares the time for 1 MiB with that for a sixteenth of it. It fails when the time grows
// quadratically, to 256 times.
func BenchmarkAdversarial(b *testing.B) {
	const small, large = 64 << 10, 1 << 20
	took := func(text string) time.Duration {
		best := time.Duration(math.MaxInt64)
		for range 3 {
			began := time.Now()
			Text(text)
			best = min(best, time.Since(began))
		}
		return best
	}
	ratio := func(unit string) float64 {
		least := math.Inf(1)
		for range 3 { // other work on the machine makes a ratio larger occasionally
			least = min(least, float64(took(repeated(unit, large)))/float64(took(repeated(unit, small))))
			if least < 2*large/small {
				break
			}
		}
		return least
	}
	for b.Loop() {
		var worst float64
		for _, unit := range adversarial() {
			ratio := ratio(unit)
			if worst = max(worst, ratio); ratio > 4*large/small {
				b.Errorf("%.30q: 1 MiB takes %.0f times as long as 64 KiB", unit, ratio)
			}
		}
		b.ReportMetric(worst, "worst-ratio")
	}
}

// TestAdversarialDocuments redacts large JSON documents that are deep, nested in strings, or full of secrets.
func TestAdversarialDocuments(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	nested := `"x"`
	for range 16 {
		text := testenv.Must(json.Marshal(`{"password":` + nested + `,"a":` + nested + `}`))(t)
		if len(text) > size {
			break
		}
		nested = string(text)
	}
	docs := map[string]string{
		"members":    "[" + strings.Repeat(`{"password":1},`, size/15) + "0]",
		"pairs":      `{"name":"secret"` + strings.Repeat(`,"value":"x"`, size/12) + "}",
		"levels":     strings.Repeat(`{"a":[`, 4900) + strings.Repeat(`]}`, 4900),
		"documents":  nested,
		"one string": `"` + strings.Repeat(`\"password\":\"`, size/15) + `"`,
		"no JSON":    strings.Repeat(`{"password":"`, size/13),
	}
	for name, doc := range docs {
		if got := JSON(json.RawMessage(doc)); !json.Valid(got) {
			t.Errorf("%s: the result is no JSON", name)
		}
	}
}

// BenchmarkText shows by its MB/s that the work is linear: the rate is the same for 1 MiB as for 64 KiB.
func BenchmarkText(b *testing.B) {
	sentence := "activity Charge (attempt 3): post to api.example.com: 503 Service Unavailable: {\"error\":\"busy\",\"id\":7} "
	for _, unit := range []string{sentence, "password=", "eyJhbGciOi.", `"a":`, "://a:b", "==", "ghp_"} {
		for _, size := range []int{128, 64 << 10, 1 << 20} {
			text := strings.Repeat(unit, size/len(unit)+1)[:size]
			b.Run(fmt.Sprintf("%.10q/%d", unit, size), func(b *testing.B) {
				b.SetBytes(int64(size))
				for b.Loop() {
					Text(text)
				}
			})
		}
	}
}
