package realhost

import (
	"bufio"
	"bytes"
	_ "embed" // the requests
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// document holds the requests in the format of .http files: each starts with a line of ### and its name, followed by
// the request line, its headers, and after an empty line the body. A line "# 413" before the request line sets the
// status that both hosts have to answer; without it their answers only have to agree. {{key}} is the key of the app,
// {{host}} the address of the host, {{x:5}} five times the letter x. The body of a request with Transfer-Encoding:
// chunked is sent as one chunk.
//
//go:embed testdata/requests.http
var document string

// exchange is a request on the wire, without Host, Content-Length and Connection, which send adds.
type exchange struct {
	name    string
	want    int // the status; 0: any
	line    string
	headers []string
	body    string
}

// method returns that of the request line.
func (e exchange) method() string {
	method, _, _ := strings.Cut(e.line, " ")
	return method
}

// exchanges reads the requests of a document.
func exchanges(t *testing.T, document, key string) (all []exchange) {
	t.Helper()
	names := map[string]bool{}
	for _, part := range strings.Split("\n"+document, "\n### ")[1:] {
		name, rest, _ := strings.Cut(part, "\n")
		want := 0
		if line, after, _ := strings.Cut(rest, "\n"); strings.HasPrefix(line, "# ") {
			var err error
			if want, err = strconv.Atoi(strings.TrimPrefix(line, "# ")); err != nil {
				t.Fatalf("requests.http: %q: %v", name, err)
			}
			rest = after
		}
		head, body, _ := strings.Cut(expand(rest, key), "\n\n")
		lines := strings.Split(strings.Trim(head, "\n"), "\n")
		e := exchange{name: name, want: want, line: lines[0], headers: lines[1:], body: strings.TrimRight(body, "\n")}
		if names[name] || e.line == "" {
			t.Fatalf("requests.http: %q is there twice, or has no request line", name)
		}
		names[name] = true
		all = append(all, e)
	}
	return all
}

var repeated = regexp.MustCompile(`\{\{(.):([0-9]+)\}\}`)

// expand replaces the placeholders in double braces.
func expand(text, key string) string {
	text = strings.ReplaceAll(text, "{{key}}", key)
	return repeated.ReplaceAllStringFunc(text, func(match string) string {
		m := repeated.FindStringSubmatch(match)
		count, err := strconv.Atoi(m[2])
		if err != nil {
			return match
		}
		return strings.Repeat(m[1], count)
	})
}

// wire returns the request as a host receives it.
func (e exchange) wire(address string) []byte {
	line, headers, body := strings.ReplaceAll(e.line, "{{host}}", address), slices.Clone(e.headers), e.body
	for i, header := range headers {
		headers[i] = strings.ReplaceAll(header, "{{host}}", address)
	}
	if !strings.Contains(line, " HTTP/") {
		line += " HTTP/1.1"
	}
	has := func(name string) bool {
		for _, header := range headers {
			if before, _, _ := strings.Cut(header, ":"); strings.EqualFold(before, name) {
				return true
			}
		}
		return false
	}
	if !has("Host") && strings.HasSuffix(line, "/1.1") {
		headers = append([]string{"Host: " + address}, headers...)
	}
	if !has("Transfer-Encoding") && (e.body != "" || e.method() == http.MethodPost || e.method() == http.MethodPatch) {
		headers = append(headers, "Content-Length: "+strconv.Itoa(len(e.body)))
	}
	if slices.Contains(headers, "Transfer-Encoding: chunked") {
		body = fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body)
	}
	headers = append(headers, "Connection: close")
	return []byte(line + "\r\n" + strings.Join(headers, "\r\n") + "\r\n\r\n" + body)
}

// answer is the answer of a host.
type answer struct {
	status int
	header http.Header
	// framing is how the end of the body is marked: a length, chunks, or the end of the connection.
	framing string
	body    []byte
}

// send sends a request to a host, which may answer after it has stopped reading.
func send(address string, e exchange) (answer, error) {
	connection, err := net.Dial("tcp", address)
	if err != nil {
		return answer{}, err
	}
	defer connection.Close()
	_, wrote := connection.Write(e.wire(address))
	reader := bufio.NewReader(connection)
	response, err := http.ReadResponse(reader, &http.Request{Method: e.method()})
	for err == nil && response.StatusCode == http.StatusContinue {
		response, err = http.ReadResponse(reader, &http.Request{Method: e.method()})
	}
	if err != nil {
		return answer{}, fmt.Errorf("read the answer (writing: %v): %w", wrote, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{}, fmt.Errorf("read the body: %w", err)
	}
	a := answer{status: response.StatusCode, header: response.Header, body: bytes.TrimSpace(body), framing: "end"}
	switch {
	case len(response.TransferEncoding) > 0:
		a.framing = "chunks"
	case response.ContentLength >= 0:
		a.framing = "length"
	}
	return a, nil
}
