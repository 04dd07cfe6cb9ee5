package realhost

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// hosted is one of the two hosts with a recording app.
type hosted struct {
	recording
	address string
}

// both starts the two hosts with apps that have the same functions.
func both(t *testing.T, functions map[string]string, prepare func(*testing.T, recording)) (onReal, onLocal hosted) {
	t.Helper()
	testenv.RealHost(t)
	one, two := newRecording(t, functions), newRecording(t, functions)
	one.probe = "/api/web/ready"
	for _, r := range []recording{one, two} {
		if os.Getenv(testenv.RealHostExtensions) != "" {
			withQueues(t, r.dist)
		}
		prepare(t, r)
	}
	store := testenv.Must(azure.NewQueues(two.account))(t)
	started := startReal(t, one.app)
	local := runLocal(t, two.app, store)
	return hosted{one, strings.TrimPrefix(started.url, "http://")}, hosted{two, strings.TrimPrefix(local.URL(), "http://")}
}

const (
	webFunction = `{"type":"httpTrigger","direction":"in","name":"req","authLevel":"anonymous","route":"web/{*rest}",
		"methods":["get","head","post","put","delete","options"]},{"type":"http","direction":"out","name":"res"}`
	timerFunction = `{"type":"timerTrigger","direction":"in","name":"tick","schedule":"0 0 0 1 1 *"}`
)

// arrivals are the requests whose path to the handler is compared, with paths, queries, headers and bodies as a proxy
// sends them.
const arrivals = `
### plain
GET /api/web/x

### escapes
GET /api/web/%2F%252F%2f%2E%5C+%2B;%3B%20%25%41%7E%C3%BC%22%3C%5B[:%3A@%40%2C

### characters
GET /api/web/a|b^c'd(e)f*g!h$i&j=k~l

### backslash and null of a query
GET /api/web/a\b?n=%00

### two slashes within
GET /api/web/a//b

### dots
GET /api/web/a/./b/../c

### dots at the end
GET /api/web/a/..

### no UTF-8
GET /api/web/%FF%C3x

### line feed
GET /api/web/%0A%7F

### other letters
GET /API/WEB/X

### a slash at the end
GET /api/web/x/

### query
GET /api/web/x?q=%2F%252F+%20;a&b&c=&c=2[|"<>]&code=k

### query that is no query
GET /api/web/x?q=%ZZ%

### empty query
GET /api/web/x?

### query with braces
GET /api/web/x?q={}^\` + "`" + `'()*!~

### forwarded
GET /api/web/x
X-Forwarded-For: 1.2.3.4
X-Forwarded-Proto: https
X-Forwarded-Host: example.org
Forwarded: for=1.2.3.4

### trace
GET /api/web/x
traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
tracestate: a=b

### trace that is none
GET /api/web/x
traceparent: none

### headers twice
GET /api/web/x
X-Twice: 1
X-Twice: 2
Cookie: a=b
Cookie: c=d
Accept-Encoding: gzip

### own headers of the host
GET /api/web/x
X-Azure-Functions-InvocationId: made-up
x-ms-invocation-id: made-up
X-Azure-Functions-HostVersion: 1

### a head
HEAD /api/web/x

### options
OPTIONS /api/web/x

### lower case
get /api/web/x

### post without a body
POST /api/web/x

### post
POST /api/web/x
Content-Type: application/json

{"a":1}

### chunks
POST /api/web/x
Transfer-Encoding: chunked

text

### delete with a body
DELETE /api/web/x
Content-Type: text/plain

text

### expecting to be told to go on
PUT /api/web/x
Expect: 100-continue

text

### hop by hop
GET /api/web/x
TE: trailers
Proxy-Connection: keep-alive
Keep-Alive: timeout=5
`

// TestSameArrivals checks that a handler receives the same requests from both hosts, byte for byte except for ids and
// times.
func TestSameArrivals(t *testing.T) {
	onReal, onLocal := both(t, map[string]string{"web": webFunction, "tick": timerFunction}, func(*testing.T, recording) {})
	seen := onReal.skipProbes(t, onLocal)
	for _, e := range exchanges(t, arrivals, "") {
		t.Run(e.name, func(t *testing.T) {
			for _, h := range []hosted{onReal, onLocal} {
				if a, err := send(h.address, e); err != nil || a.status != http.StatusOK {
					t.Fatalf("status %d, %v", a.status, err)
				}
			}
			seen++
			compareLast(t, onReal, onLocal, seen)
		})
	}
	t.Run("timer by hand", func(t *testing.T) {
		invoke := exchange{line: "POST /admin/functions/tick", headers: []string{"Content-Type: application/json"}, body: `{"input":"x"}`}
		for _, h := range []hosted{onReal, onLocal} {
			if a, err := send(h.address, invoke); err != nil || a.status != http.StatusAccepted {
				t.Fatalf("status %d, %v", a.status, err)
			}
		}
		seen++
		compareLast(t, onReal, onLocal, seen)
	})
}

// skipProbes sends the probes that detected the running real host to the other handler, too.
func (h hosted) skipProbes(t *testing.T, other hosted) (seen int) {
	t.Helper()
	seen = len(h.requests(t, 1))
	for range seen {
		if a, err := send(other.address, exchange{line: "GET /api/web/ready"}); err != nil || a.status != http.StatusOK {
			t.Fatalf("status %d, %v", a.status, err)
		}
	}
	return seen
}

// compareLast compares the request of a number that the handlers have received.
func compareLast(t *testing.T, onReal, onLocal hosted, number int) {
	t.Helper()
	want, got := onReal.requests(t, number)[number-1].shown(t), onLocal.requests(t, number)[number-1].shown(t)
	if want != got {
		t.Errorf("from the real host: %s\nfrom the local host: %s", want, got)
	}
}
