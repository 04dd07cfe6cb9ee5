package azure

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/internal/storage"
	"github.com/vibedata/roundhouse/internal/testenv"
)

const secret = "c2VjcmV0LWtleQ=="

// view is the part of an account that a test compares.
type view struct {
	Name, Table, Queue, Blob string
	Emulator, Key            bool
}

func viewOf(a Account) view {
	_, _, key := a.SharedKey()
	return view{a.Name, a.TableEndpoint, a.QueueEndpoint, a.BlobEndpoint, a.Emulator, key}
}

func TestFromConnectionString(t *testing.T) {
	t.Parallel()
	emulator := view{"devstoreaccount1", "http://127.0.0.1:10002/devstoreaccount1", "http://127.0.0.1:10001/devstoreaccount1", "http://127.0.0.1:10000/devstoreaccount1", true, true}
	tests := []struct {
		name, text string
		want       view
	}{
		{"development storage", "UseDevelopmentStorage=true", emulator},
		{"development storage in other case", " usedevelopmentstorage=True; ", emulator},
		{"explicit emulator", "AccountName=devstoreaccount1;AccountKey=" + secret + ";TableEndpoint=http://localhost:3/devstoreaccount1/;QueueEndpoint=http://127.0.0.1:2/devstoreaccount1;BlobEndpoint=http://[::1]:1/devstoreaccount1",
			view{"devstoreaccount1", "http://localhost:3/devstoreaccount1", "http://127.0.0.1:2/devstoreaccount1", "http://[::1]:1/devstoreaccount1", true, true}},
		{"public cloud", "DefaultEndpointsProtocol=https;AccountName=acct1;AccountKey=" + secret + ";EndpointSuffix=core.windows.net",
			view{"acct1", "https://acct1.table.core.windows.net", "https://acct1.queue.core.windows.net", "https://acct1.blob.core.windows.net", false, true}},
		{"other cloud, one endpoint given", "AccountName=acct1;AccountKey=" + secret + ";EndpointSuffix=core.chinacloudapi.cn;TableEndpoint=https://tables.example.org",
			view{"acct1", "https://tables.example.org", "https://acct1.queue.core.chinacloudapi.cn", "https://acct1.blob.core.chinacloudapi.cn", false, true}},
		{"another account on this machine", "AccountName=acct1;AccountKey=" + secret + ";TableEndpoint=http://127.0.0.1:3/a;QueueEndpoint=http://127.0.0.1:2/a;BlobEndpoint=http://127.0.0.1:1/a",
			view{"acct1", "http://127.0.0.1:3/a", "http://127.0.0.1:2/a", "http://127.0.0.1:1/a", false, true}},
		{"another account of the emulator", EmulatorAccountNamed("acct1", 1, 2, 3).ConnectionString(),
			view{"acct1", "http://127.0.0.1:3/acct1", "http://127.0.0.1:2/acct1", "http://127.0.0.1:1/acct1", true, true}},
	}
	for _, test := range tests {
		got, err := FromConnectionString(test.text)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		testenv.Equal(t, test.name, test.want, viewOf(got))
		again, err := FromConnectionString(got.ConnectionString())
		if err != nil {
			t.Errorf("%s: its own connection string: %v", test.name, err)
		} else if diff := cmp.Diff(viewOf(got), viewOf(again)); diff != "" {
			t.Errorf("%s: its own connection string (-want +got):\n%s", test.name, diff)
		}
	}
}

func TestBadConnectionStrings(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text string
		want       []string // texts of the error
	}{
		{"empty", "", []string{"AccountName", "AccountKey"}},
		{"no key", "AccountName=acct1", []string{"AccountKey"}},
		{"bad key", "AccountName=acct1;AccountKey=" + secret + "!", []string{"AccountKey"}},
		{"bad name", "AccountName=Acct/1;AccountKey=" + secret, []string{"AccountName"}},
		{"only a key", secret, []string{"part 1"}},
		{"unknown part", "AccountName=acct1;AccountKey=" + secret + ";Secret" + secret, []string{"part 3"}},
		{"a part twice", "AccountName=acct1;AccountName=acct2;AccountKey=" + secret, []string{"part 2", "accountname"}},
		{"signature", "AccountName=acct1;AccountKey=" + secret + ";SharedAccessSignature=sig=" + secret, []string{"SharedAccessSignature"}},
		{"http elsewhere", "AccountName=acct1;AccountKey=" + secret + ";DefaultEndpointsProtocol=http", []string{"BlobEndpoint", "QueueEndpoint", "TableEndpoint", "https"}},
		{"other scheme", "AccountName=acct1;AccountKey=" + secret + ";TableEndpoint=ftp://a", []string{"TableEndpoint"}},
		{"endpoint with a signature", "AccountName=acct1;AccountKey=" + secret + ";QueueEndpoint=https://a/?sig=" + secret, []string{"QueueEndpoint"}},
		{"host that looks local", "AccountName=acct1;AccountKey=" + secret + ";QueueEndpoint=http://127.0.0.1.example.org/a", []string{"QueueEndpoint"}},
		{"suffix with a path", "AccountName=acct1;AccountKey=" + secret + ";EndpointSuffix=a?" + secret, []string{"TableEndpoint"}},
		{"endpoint with a container", "AccountName=acct1;AccountKey=" + secret + ";BlobEndpoint=https://acct1.blob.core.windows.net/box", []string{"BlobEndpoint"}},
		{"address with a container", "AccountName=acct1;AccountKey=" + secret + ";BlobEndpoint=https://10.0.0.1/acct1/box", []string{"BlobEndpoint"}},
		{"endpoint with two dots", "AccountName=acct1;AccountKey=" + secret + ";TableEndpoint=https://acct1..table.core.windows.net", []string{"TableEndpoint"}},
		{"half an emulator", "AccountName=devstoreaccount1;AccountKey=" + secret + ";QueueEndpoint=http://127.0.0.1:1/devstoreaccount1", []string{"all three"}},
		{"emulator elsewhere", "AccountName=devstoreaccount1;AccountKey=" + secret, []string{"devstoreaccount1"}},
		{"everything at once", "AccountName=A;AccountKey=!;TableEndpoint=x;QueueEndpoint=http://example.org", []string{"AccountName", "AccountKey", "TableEndpoint", "QueueEndpoint"}},
	}
	for _, test := range tests {
		_, err := FromConnectionString(test.text)
		wantNamed(t, test.name, err, test.want)
	}
}

func wantNamed(t *testing.T, name string, err error, names []string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error", name)
		return
	}
	for _, want := range names {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %q does not name %s", name, err, want)
		}
	}
	if strings.Contains(err.Error(), secret) {
		t.Errorf("%s: error %q shows the key", name, err)
	}
}

func environment(settings map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		v, ok := settings[name]
		return v, ok
	}
}

func TestFromEnvironment(t *testing.T) {
	t.Parallel()
	const name = "AzureWebJobsStorage"
	public := view{"acct1", "https://acct1.table.core.windows.net", "https://acct1.queue.core.windows.net", "https://acct1.blob.core.windows.net", false, false}
	byURI := view{"", "https://t.example.org", "https://q.example.org", "https://b.example.org", false, false}
	uris := map[string]string{name + "__tableServiceUri": "https://t.example.org/", name + "__queueServiceUri": "https://q.example.org", name + "__blobServiceUri": "https://b.example.org"}
	tests := []struct {
		name     string
		settings map[string]string
		want     view
	}{
		{"account name and default credential", map[string]string{name: "", name + "__accountName": "acct1"}, public},
		{"managed identity", map[string]string{name + "__accountName": "acct1", name + "__credential": "managedidentity"}, public},
		{"user-assigned identity", map[string]string{name + "__accountName": "acct1", name + "__credential": "managedidentity", name + "__clientId": "6ba7b810-9dad-11d1-80b4-00c04fd430c8"}, public},
		{"service addresses", uris, byURI},
	}
	for _, test := range tests {
		got, err := FromEnvironment(environment(test.settings), name)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		testenv.Equal(t, test.name, test.want, viewOf(got))
		if got.Credential == nil || got.ConnectionString() != "" {
			t.Errorf("%s: credential %v, connection string %q, want one and none", test.name, got.Credential, got.ConnectionString())
		}
	}
	got, err := FromEnvironment(environment(map[string]string{name: "UseDevelopmentStorage=true", name + "__accountName": "ignored"}), name)
	if err != nil || !got.Emulator {
		t.Errorf("a connection string beside an identity: %v, %v, want the string's account, as the host has it", got, err)
	}

	bad := []struct {
		name     string
		settings map[string]string
		want     []string
	}{
		{"nothing", nil, []string{name, name + "__accountName"}},
		{"bad string", map[string]string{name: "AccountKey=" + secret}, []string{name, "AccountName"}},
		{"bad name", map[string]string{name + "__accountName": "a/b"}, []string{name + "__accountName"}},
		{"unknown credential", map[string]string{name + "__accountName": "acct1", name + "__credential": "password"}, []string{name + "__credential"}},
		{"no table address", map[string]string{name + "__queueServiceUri": "https://q", name + "__blobServiceUri": "https://b"}, []string{name + "__tableServiceUri"}},
		{"a token over http", map[string]string{name + "__accountName": "acct1", name + "__tableServiceUri": "http://127.0.0.1:1"}, []string{name + "__tableServiceUri", "https"}},
		{"all at once", map[string]string{name + "__accountName": "A", name + "__credential": "x", name + "__queueServiceUri": "http://q?sig=" + secret},
			[]string{name + "__accountName", name + "__credential", name + "__queueServiceUri"}},
	}
	for _, test := range bad {
		_, err := FromEnvironment(environment(test.settings), name)
		wantNamed(t, test.name, err, test.want)
	}
}

func TestNoSecretIsShown(t *testing.T) {
	t.Parallel()
	a := testenv.Must(FromConnectionString("AccountName=acct1;AccountKey=" + secret))(t)
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("connected", "account", a, "pointer", &a)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("connected", "account", a, "in", []Account{a})
	for _, shown := range []string{log.String(), fmt.Sprint(a), fmt.Sprintf("%v %+v %#v %s %q", a, a, a, a, a), fmt.Sprintf("%v %+v %#v", &a, []Account{a}, map[string]Account{"a": a})} {
		if strings.Contains(shown, secret) || !strings.Contains(shown, "acct1") {
			t.Errorf("shown as %s", shown)
		}
	}
}

type noToken struct{ err error }

func (n noToken) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{}, n.err
}

func TestClassify(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	if err := classify(ctx, nil); err != nil {
		t.Errorf("nil: %v", err)
	}
	cause := errors.New("no identity here")
	_, err := tokens{noToken{cause}}.GetToken(ctx, policy.TokenRequestOptions{})
	if err = classify(ctx, fmt.Errorf("send: %w", err)); !errors.Is(err, storage.ErrDenied) || !errors.Is(err, cause) {
		t.Errorf("no token: %v, want %v", err, storage.ErrDenied)
	}
	over, cancel := context.WithDeadline(ctx, time.Unix(0, 0))
	defer cancel()
	if err := classify(over, over.Err()); !errors.Is(err, storage.ErrOutcomeUnknown) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the caller's deadline: %v, want %v and %v", err, storage.ErrOutcomeUnknown, context.DeadlineExceeded)
	}
	if err := classify(ctx, context.DeadlineExceeded); !errors.Is(err, storage.ErrOutcomeUnknown) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a try's deadline: %v, want %v and not the caller's", err, storage.ErrOutcomeUnknown)
	}
	response := &azcore.ResponseError{StatusCode: 412, ErrorCode: "UpdateConditionNotSatisfied"}
	err = classify(ctx, response)
	if as, ok := errors.AsType[*azcore.ResponseError](err); !ok || as != response || err.Error() != "precondition failed: HTTP 412 UpdateConditionNotSatisfied" {
		t.Errorf("an answer: %v", err)
	}
}

func TestFailureOf(t *testing.T) {
	t.Parallel()
	tests := []struct {
		status int
		code   string
		want   error
	}{
		{404, "QueueNotFound", storage.ErrNotFound}, {404, "BlobNotFound", storage.ErrNotFound}, {409, "ContainerAlreadyExists", storage.ErrExists},
		{409, "QueueBeingDeleted", storage.ErrThrottled}, {409, "ContainerBeingDeleted", storage.ErrThrottled}, {401, "", storage.ErrDenied}, {403, "AuthorizationPermissionMismatch", storage.ErrDenied},
		{400, "OutOfRangeQueryParameterValue", storage.ErrInvalid}, {411, "", storage.ErrInvalid}, {408, "", storage.ErrOutcomeUnknown}, {500, "", storage.ErrOutcomeUnknown}, {504, "", storage.ErrOutcomeUnknown},
		{503, "OperationTimedOut", storage.ErrOutcomeUnknown}, {503, "", storage.ErrThrottled}, {429, "", storage.ErrThrottled}, {302, "", storage.ErrOutcomeUnknown}, {200, "", storage.ErrOutcomeUnknown},
	}
	for _, test := range tests {
		if got := failureOf(test.status, test.code); !errors.Is(got, test.want) {
			t.Errorf("%d %s: %v, want %v", test.status, test.code, got, test.want)
		}
	}
}
