package entra_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	azlog "github.com/Azure/azure-sdk-for-go/sdk/azcore/log"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/internal/graphfake"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/services/entra"
)

const application = "0b1f5a2e-7c55-4c2a-9d0f-3f0f6b1f7a11"

// sdkLog is the whole log of the SDK while these tests run.
var sdkLog struct {
	sync.Mutex
	bytes.Buffer
}

func TestMain(m *testing.M) {
	azlog.SetListener(func(_ azlog.Event, text string) {
		sdkLog.Lock()
		defer sdkLog.Unlock()
		fmt.Fprintln(&sdkLog, text)
	})
	goleak.VerifyTestMain(m)
}

// open starts a server with one application and connects to it. At the end no log and no error (passed to note) may
// contain a value.
func open(t *testing.T) (server *graphfake.Server, graph *entra.Graph, login *entra.Login, note func(error) error) {
	t.Helper()
	server = graphfake.New()
	server.AddApplication(application)
	address, options := server.Start(t)
	options.Logging.IncludeBody = true // is ignored
	graph, graphErr := entra.NewGraph(address, server.Credential(), options)
	login, loginErr := entra.NewLogin(address, graphfake.Tenant, address, options)
	testenv.OK(t, errors.Join(graphErr, loginErr))
	var noted bytes.Buffer
	t.Cleanup(func() {
		sdkLog.Lock()
		defer sdkLog.Unlock()
		if len(server.Leaks(append(noted.Bytes(), sdkLog.Bytes()...))) != 0 {
			t.Errorf("values show in errors or in the SDK's log (of %d bytes)", sdkLog.Len())
		}
	})
	return server, graph, login, func(err error) error { fmt.Fprintf(&noted, "%v %+v\n", err, err); return err }
}

func TestPasswords(t *testing.T) {
	t.Parallel()
	server, graph, login, note := open(t)
	t.Cleanup(func() {
		sdkLog.Lock()
		defer sdkLog.Unlock()
		if sdkLog.Len() == 0 { // otherwise the search would be empty
			t.Error("the SDK logs nothing")
		}
	})
	foreign := server.Add(application, "by hand")
	end := time.Now().Add(time.Hour)
	added, value, err := graph.AddPassword(t.Context(), application, "ours/ü", end)
	if err != nil || added.KeyID == "" || added.DisplayName != "ours/ü" || !added.End.Equal(end.UTC().Truncate(time.Second)) || string(value) != server.Values()[1] {
		t.Fatalf("AddPassword = %+v, %v", added, err)
	}
	if err := login.Try(t.Context(), application, value); err != nil {
		t.Errorf("Try = %v", err)
	}
	listed, err := graph.Passwords(t.Context(), application)
	if err != nil || len(listed) != 2 || listed[0] != added || listed[1].KeyID != foreign || listed[1].DisplayName != "by hand" {
		t.Errorf("Passwords = %+v, %v", listed, err)
	}
	for range 2 {
		if err := graph.RemovePassword(t.Context(), application, added.KeyID); err != nil {
			t.Errorf("RemovePassword = %v", err)
		}
	}
	if live := server.Live(application); len(live) != 1 || live[foreign] == "" {
		t.Errorf("passwords: %v", live)
	}
	if err := note(login.Try(t.Context(), application, value)); !errors.Is(err, entra.ErrNotAccepted) || !strings.Contains(err.Error(), "AADSTS7000215") {
		t.Errorf("Try = %v", err)
	}
}

func TestGraphErrors(t *testing.T) {
	t.Parallel()
	cases := []struct {
		what    string
		prepare func(s *graphfake.Server)
		id      string
		want    error
		says    string
		adds    int // requests
		made    int // passwords
	}{
		{"no such application", func(*graphfake.Server) {}, "ffffffff" + application[8:], entra.ErrNotFound, "Request_ResourceNotFound", 1, 0},
		{"not found yet", func(s *graphfake.Server) { s.FoundAfter = time.Hour }, application, entra.ErrNotFound, "does not exist", 1, 0},
		{"no id", func(*graphfake.Server) {}, "x')/y('", entra.ErrInvalid, "UUID", 0, 0},
		{"full", func(s *graphfake.Server) { s.Limit = 1; s.Add(application, "by hand") }, application, entra.ErrInvalid, "maximum of 1", 1, 1},
		{"not allowed", add(graphfake.Fault{Status: 403, Code: "Authorization_RequestDenied"}), application, entra.ErrForbidden, "Authorization_RequestDenied", 1, 0},
		{"down", add(graphfake.Fault{Status: 503}), application, entra.ErrOutcomeUnknown, "503", 1, 0},
		{"done, and down", add(graphfake.Fault{Status: 504, Applied: true}), application, entra.ErrOutcomeUnknown, "504", 1, 1},
		{"cut off", add(graphfake.Fault{Applied: true}), application, entra.ErrOutcomeUnknown, "", 1, 1},
		{"garbage", add(graphfake.Fault{Status: 200, Body: `{"secretText":"value-in-garbage"`}), application, entra.ErrOutcomeUnknown, "decoded", 1, 0},
		{"no key id", add(graphfake.Fault{Status: 200, Body: `{"secretText":"value-in-garbage"}`}), application, entra.ErrOutcomeUnknown, "lacks", 1, 0},
		{"no value", add(graphfake.Fault{Status: 200, Body: `{"keyId":"k"}`}), application, entra.ErrOutcomeUnknown, "lacks", 1, 0},
		{"a page of HTML", add(graphfake.Fault{Status: 403, Body: "<html>" + strings.Repeat("x", 9999)}), application, entra.ErrForbidden, "403", 1, 0},
		{"a long story", add(graphfake.Fault{Status: 403, Message: strings.Repeat("x", 9999)}), application, entra.ErrForbidden, "...", 1, 0},
		{"throttled", add(graphfake.Fault{Status: 429, RetryAfter: time.Second}, graphfake.Fault{Status: 429}), application, nil, "", 3, 1},
		{"throttled for good", add(make429(4)...), application, entra.ErrThrottled, "429", 4, 0},
	}
	for _, c := range cases {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			server, graph, _, note := open(t)
			c.prepare(server)
			_, _, err := graph.AddPassword(t.Context(), c.id, "ours", time.Now().Add(time.Hour))
			if note(err) == nil != (c.want == nil) || !errors.Is(err, c.want) {
				t.Fatalf("AddPassword = %v, want %v", err, c.want)
			}
			if err != nil && (!strings.Contains(err.Error(), c.says) || len(err.Error()) > 1000 || strings.Contains(err.Error(), "garbage")) {
				t.Errorf("AddPassword = %v", err)
			}
			if n := server.Count("/addPassword"); n != c.adds || len(server.Live(application)) != c.made {
				t.Errorf("%d requests, passwords %v", n, server.Live(application))
			}
		})
	}
}

// add breaks requests to add a password.
func add(faults ...graphfake.Fault) func(s *graphfake.Server) {
	return func(s *graphfake.Server) {
		for _, f := range faults {
			f.Action = "/addPassword"
			s.Inject(f)
		}
	}
}

func make429(n int) []graphfake.Fault {
	faults := make([]graphfake.Fault, n)
	for i := range faults {
		faults[i].Status = 429
	}
	return faults
}

// A removal, unlike an addition, is repeated without an answer, and may find its work done.
func TestRemoveWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	server, graph, _, _ := open(t)
	keyID := server.Add(application, "ours")
	server.Inject(graphfake.Fault{Action: "/removePassword", Applied: true}, graphfake.Fault{Action: "/removePassword", Applied: true, Status: 502})
	if err := graph.RemovePassword(t.Context(), application, keyID); err != nil || len(server.Live(application)) != 0 {
		t.Errorf("RemovePassword = %v, passwords %v", err, server.Live(application))
	}
	keyID = server.Add(application, "ours")
	server.Inject(graphfake.Fault{Action: "/removePassword", Status: 400})
	if err := graph.RemovePassword(t.Context(), application, keyID); !errors.Is(err, entra.ErrInvalid) {
		t.Errorf("RemovePassword that is refused = %v", err)
	}
}

func TestLoginErrors(t *testing.T) {
	t.Parallel()
	server, _, login, note := open(t)
	server.AcceptedAfter = time.Hour
	server.Add(application, "ours")
	value := []byte(server.Values()[0])
	token := func(f graphfake.Fault) { f.Action = "/token"; server.Inject(f) }
	cases := []struct {
		what    string
		prepare func()
		id      string
		want    error
		says    string
	}{
		{"not replicated", func() {}, application, entra.ErrNotAccepted, "AADSTS7000215"},
		{"no such application", func() {}, "ffffffff" + application[8:], entra.ErrNotAccepted, "AADSTS700016"},
		{"no id", func() {}, "x", entra.ErrInvalid, "UUID"},
		{"expired", func() { token(graphfake.Fault{Status: 401, Body: `{"error_codes":[7000222]}`}) }, application, entra.ErrInvalid, "7000222"},
		{"the value in the answer", func() { token(graphfake.Fault{Status: 400, Body: string(value)}) }, application, entra.ErrNotAccepted, "400"},
		{"down for good", func() {
			for range 4 {
				token(graphfake.Fault{Status: 503})
			}
		}, application, entra.ErrOutcomeUnknown, "503"},
		{"throttled for good", func() {
			for range 4 {
				token(graphfake.Fault{Status: 429})
			}
		}, application, entra.ErrThrottled, "429"},
		{"cut off, then answered", func() { token(graphfake.Fault{}); token(graphfake.Fault{Status: 200, Body: "{}"}) }, application, nil, ""},
	}
	for _, c := range cases { // one after the other: they share a server
		c.prepare()
		err := note(login.Try(t.Context(), c.id, value))
		if (err == nil) != (c.want == nil) || !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: Try = %v, want %v with %q", c.what, err, c.want, c.says)
		}
	}
	server.Disable(application)
	if err := note(login.Try(t.Context(), application, value)); !errors.Is(err, entra.ErrInvalid) {
		t.Errorf("Try of a disabled application = %v", err)
	}
}

func TestOpen(t *testing.T) {
	t.Parallel()
	server := graphfake.New()
	for _, address := range []string{"http://graph.fake", "https://u:secret-in-url@graph.fake", "https://graph.fake/x", "graph.fake", "https://"} {
		_, err := entra.NewGraph(address, server.Credential(), nil)
		_, loginErr := entra.NewLogin(address, graphfake.Tenant, "", nil)
		if !errors.Is(err, entra.ErrInvalid) || !errors.Is(loginErr, entra.ErrInvalid) || strings.Contains(fmt.Sprint(err, loginErr), "secret-in-url") {
			t.Errorf("at %s: %v, %v", address, err, loginErr)
		}
	}
	if _, err := entra.NewLogin("", "a/b", "", nil); !errors.Is(err, entra.ErrInvalid) {
		t.Errorf("NewLogin for a path = %v", err)
	}
	if _, err := entra.NewGraph("", nil, nil); err == nil {
		t.Error("NewGraph without a credential succeeded")
	}
	if _, err := entra.NewGraph("", server.Credential(), nil); err != nil {
		t.Error(err)
	}
}

// The end of a context ends a call, and its error reports that.
func TestCancelled(t *testing.T) {
	t.Parallel()
	server := graphfake.New()
	graph, err := entra.NewGraph(graphfake.Address, server.Credential(), &policy.ClientOptions{Transport: server})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := graph.Passwords(ctx, application); !errors.Is(err, context.Canceled) {
		t.Errorf("Passwords = %v", err)
	}
}

var _ policy.Transporter = (*graphfake.Server)(nil)
var _ http.Handler = (*graphfake.Server)(nil)
