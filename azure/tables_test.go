package azure_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/tables"
)

// serve returns a store whose service is the handler.
func serve(t *testing.T, handler http.HandlerFunc) tables.Store {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	a, err := azure.FromConnectionString(fmt.Sprintf("AccountName=devstoreaccount1;AccountKey=a2V5;TableEndpoint=%[1]s/devstoreaccount1;QueueEndpoint=%[1]s/q;BlobEndpoint=%[1]s/b", server.URL))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.CloseIdleConnections)
	return testenv.Must(azure.NewTables(a))(t)
}

func insert(row string) tables.Op {
	return tables.Insert(tables.Entity{Key: tables.Key{Partition: "p", Row: row}, Properties: map[string]any{"A": "1"}})
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	tests := []struct {
		status int
		code   string
		want   error
		blamed bool
	}{
		{400, "InvalidInput", tables.ErrInvalid, true},
		{400, "PropertyValueTooLarge", tables.ErrTooLarge, true},
		{400, "EntityTooLarge", tables.ErrTooLarge, true},
		{403, "AuthenticationFailed", tables.ErrDenied, false},
		{404, "ResourceNotFound", tables.ErrNotFound, true},
		{404, "TableNotFound", tables.ErrNotFound, false},
		{409, "EntityAlreadyExists", tables.ErrExists, true},
		{409, "TableBeingDeleted", tables.ErrThrottled, false},
		{412, "UpdateConditionNotSatisfied", tables.ErrPrecondition, true},
		{413, "RequestBodyTooLarge", tables.ErrTooLarge, true},
		{429, "TooManyRequests", tables.ErrThrottled, false},
		{503, "ServerBusy", tables.ErrThrottled, false},
		{500, "OperationTimedOut", tables.ErrOutcomeUnknown, false},
		{500, "InternalError", tables.ErrOutcomeUnknown, false},
		{502, "", tables.ErrOutcomeUnknown, false},
	}
	for _, test := range tests {
		store := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("x-ms-error-code", test.code)
			w.Header().Set("Retry-After", "60") // longer than a retry waits: the call returns immediately
			w.WriteHeader(test.status)
		})
		name := fmt.Sprintf("%d %s", test.status, test.code)
		err := store.Apply(t.Context(), "history", insert("r"))
		if !errors.Is(err, test.want) {
			t.Errorf("%s: got %v, want %v", name, err, test.want)
		}
		var op *tables.OpError
		if got := errors.As(err, &op); got != test.blamed {
			t.Errorf("%s: got %v; blames an operation: %t, want %t", name, err, got, test.blamed)
		}
		if _, err := store.Get(t.Context(), "history", tables.Key{Partition: "p", Row: "r"}); !errors.Is(err, test.want) {
			t.Errorf("%s: get gives %v, want %v", name, err, test.want)
		}
		if err := store.Apply(t.Context(), "history", insert("r"), insert("s")); !errors.Is(err, test.want) || errors.As(err, &op) && !test.blamed {
			t.Errorf("%s: a transaction gives %v, want %v", name, err, test.want)
		}
	}
}

const (
	twoApplied = "--batchresponse_1\r\nContent-Type: multipart/mixed; boundary=changesetresponse_2\r\n\r\n" +
		"--changesetresponse_2\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\nHTTP/1.1 204 No Content\r\nETag: W/\"1\"\r\n\r\n\r\n" +
		"--changesetresponse_2\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\nHTTP/1.1 204 No Content\r\nETag: W/\"2\"\r\n\r\n\r\n" +
		"--changesetresponse_2--\r\n--batchresponse_1--\r\n"
	failed = "--batchresponse_1\r\nContent-Type: multipart/mixed; boundary=changesetresponse_2\r\n\r\n" +
		"--changesetresponse_2\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n" +
		"HTTP/1.1 %d Whatever\r\nX-Content-Type-Options: nosniff\r\nDataServiceVersion: 3.0;\r\nContent-Type: application/json;odata=minimalmetadata;streaming=true;charset=utf-8\r\n\r\n" +
		`{"odata.error":{"code":"%s","message":{"lang":"en-US","value":"%s\nRequestId:b6cb0a5e-0002-0027-6c52-0a6f5b000000\nTime:2026-11-21T10:00:00Z"}}}` +
		"\r\n--changesetresponse_2--\r\n--batchresponse_1--\r\n"
)

func TestTransactionAnswers(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, body string
		want       error
		index      int // -1: no operation failed
	}{
		{"applied", twoApplied, nil, -1},
		{"cut off after one", twoApplied[:strings.LastIndex(twoApplied, "--changesetresponse_2\r\n")], tables.ErrOutcomeUnknown, -1},
		{"cut off in the first", twoApplied[:180], tables.ErrOutcomeUnknown, -1},
		{"empty", "", tables.ErrOutcomeUnknown, -1},
		{"garbage", "garbage", tables.ErrOutcomeUnknown, -1},
		{"exists", fmt.Sprintf(failed, 409, "EntityAlreadyExists", "1:The specified entity already exists."), tables.ErrExists, 1},
		{"precondition", fmt.Sprintf(failed, 412, "UpdateConditionNotSatisfied", "0:The update condition was not satisfied."), tables.ErrPrecondition, 0},
		{"missing", fmt.Sprintf(failed, 404, "ResourceNotFound", "1:The specified resource does not exist."), tables.ErrNotFound, 1},
		{"no table", fmt.Sprintf(failed, 404, "TableNotFound", "0:The table specified does not exist."), tables.ErrNotFound, -1},
		{"too large", fmt.Sprintf(failed, 413, "RequestBodyTooLarge", "0:The request body is too large."), tables.ErrTooLarge, 0},
		{"large value", fmt.Sprintf(failed, 400, "PropertyValueTooLarge", "1:The property value is too large."), tables.ErrTooLarge, 1},
		{"duplicate", fmt.Sprintf(failed, 400, "InvalidDuplicateRow", "1:The batch request contains a row twice."), tables.ErrInvalid, 1},
		{"no index", fmt.Sprintf(failed, 400, "InvalidInput", "Something is wrong."), tables.ErrInvalid, -1},
		{"foreign index", fmt.Sprintf(failed, 400, "InvalidInput", "99:Something is wrong."), tables.ErrInvalid, -1},
		{"busy", fmt.Sprintf(failed, 503, "ServerBusy", "0:The server is busy."), tables.ErrThrottled, -1},
		{"timed out", fmt.Sprintf(failed, 500, "OperationTimedOut", "0:The operation could not be completed in time."), tables.ErrOutcomeUnknown, -1},
		{"plain JSON", `{"odata.error":{"code":"InvalidInput","message":{"lang":"en-US","value":"0:One of the inputs is not valid."}}}`, tables.ErrInvalid, 0},
	}
	for _, test := range tests {
		store := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "multipart/mixed; boundary=batchresponse_1")
			w.WriteHeader(http.StatusAccepted)
			_, _ = io.WriteString(w, test.body)
		})
		err := store.Apply(t.Context(), "history", insert("r"), insert("s"))
		if !errors.Is(err, test.want) {
			t.Errorf("%s: got %v, want %v", test.name, err, test.want)
		}
		index := -1
		var op *tables.OpError
		if errors.As(err, &op) {
			index = op.Index
			if want := []string{"r", "s"}[index]; op.Key.Row != want {
				t.Errorf("%s: blames row %s, want %s", test.name, op.Key.Row, want)
			}
		}
		if index != test.index {
			t.Errorf("%s: %v blames operation %d, want %d", test.name, err, index, test.index)
		}
	}
}

// A "busy" after a try with unknown outcome does not mean that nothing was applied.
func TestBusyAfterUnknown(t *testing.T) {
	t.Parallel()
	var tries atomic.Int32
	store := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After-Ms", "1")
		if tries.Add(1) == 2 {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	err := store.Apply(t.Context(), "history", insert("r"))
	if !errors.Is(err, tables.ErrOutcomeUnknown) || errors.Is(err, tables.ErrThrottled) || tries.Load() != 4 {
		t.Errorf("after %d tries: %v, want 4 and %v", tries.Load(), err, tables.ErrOutcomeUnknown)
	}
	tries.Store(10)
	if err := store.Apply(t.Context(), "history", insert("r")); !errors.Is(err, tables.ErrThrottled) {
		t.Errorf("busy only: %v, want %v", err, tables.ErrThrottled)
	}
}

func TestNoAnswer(t *testing.T) {
	t.Parallel()
	dropped := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_ = conn.Close()
		}
	})
	err := dropped.Apply(t.Context(), "history", insert("r"), insert("s"))
	if !errors.Is(err, tables.ErrOutcomeUnknown) {
		t.Errorf("a dropped connection: %v, want %v", err, tables.ErrOutcomeUnknown)
	}

	cutOff := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		w.WriteHeader(http.StatusAccepted)
	})
	if err := cutOff.Apply(t.Context(), "history", insert("r"), insert("s")); !errors.Is(err, tables.ErrOutcomeUnknown) {
		t.Errorf("a cut-off answer: %v, want %v", err, tables.ErrOutcomeUnknown)
	}

	arrived := make(chan struct{}, 1)
	silent := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		arrived <- struct{}{}
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-arrived
		cancel()
	}()
	err = silent.Apply(ctx, "history", insert("r"))
	if !errors.Is(err, tables.ErrOutcomeUnknown) || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled on the way: %v, want %v and %v", err, tables.ErrOutcomeUnknown, context.Canceled)
	}
}

// serveTwoPages returns a store whose service returns two empty pages. nextRow is the row key of its continuation, ""
// for none. got holds the requests.
func serveTwoPages(t *testing.T, nextRow string) (store tables.Store, got *[]map[string]string) {
	t.Helper()
	got = new([]map[string]string)
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		*got = append(*got, map[string]string{"filter": q.Get("$filter"), "select": q.Get("$select"), "top": q.Get("$top"),
			"format": q.Get("$format"), "p": q.Get("NextPartitionKey"), "r": q.Get("NextRowKey")})
		if len(*got) == 1 {
			w.Header().Set("x-ms-continuation-NextPartitionKey", "1!4!cA--")
			if nextRow != "" {
				w.Header().Set("x-ms-continuation-NextRowKey", nextRow)
			}
		}
		_, _ = io.WriteString(w, `{"value":[]}`)
	}), got
}

// A query sends one filter with its values as data, minimal metadata, and the service's own continuation.
func TestQueryRequest(t *testing.T) {
	t.Parallel()
	store, got := serveTwoPages(t, "1!4!cg--")
	at := time.Date(2026, 11, 21, 10, 0, 0, 150, time.UTC)
	q := tables.Query{Partition: "p", From: "a", To: "b", Select: []string{"A"}, Limit: 7, Where: map[string]any{
		"S": "O'Brien' or 1 eq 1", "B": true, "I": int32(-1), "L": int64(2), "F": float64(3), "T": at, "X": []byte{1, 255}}}
	for _, err := range tables.All(t.Context(), store, "history", q) {
		t.Fatalf("an entity or %v, want two empty pages", err)
	}
	filter := "PartitionKey eq 'p' and RowKey ge 'a' and RowKey lt 'b' and B eq true and F eq 3.0 and I eq -1 and L eq 2L" +
		" and S eq 'O''Brien'' or 1 eq 1' and T eq datetime'2026-11-21T10:00:00.0000001Z' and X eq X'01ff'"
	first := map[string]string{"filter": filter, "select": "PartitionKey,RowKey,Timestamp,A", "top": "7", "format": "application/json;odata=minimalmetadata", "p": "", "r": ""}
	second := map[string]string{"filter": filter, "select": first["select"], "top": "7", "format": first["format"], "p": "1!4!cA--", "r": "1!4!cg--"}
	testenv.Equal(t, "requests", []map[string]string{first, second}, *got)
}

// A scan sends the same. Between two partitions the service may name the next partition only.
func TestScanRequest(t *testing.T) {
	t.Parallel()
	const format = "application/json;odata=minimalmetadata"
	tests := []struct {
		scan   tables.Scan
		filter string
	}{
		{tables.Scan{Row: "status"}, "RowKey eq 'status'"},
		{tables.Scan{Row: "status", FromPartition: "a"}, "PartitionKey ge 'a' and RowKey eq 'status'"},
		{tables.Scan{Row: "status", ToPartition: "b"}, "PartitionKey lt 'b' and RowKey eq 'status'"},
		{tables.Scan{Row: "a or 1 eq 1", FromPartition: "a", ToPartition: "b", Where: map[string]any{"S": "' or '1' eq '1"}},
			"PartitionKey ge 'a' and PartitionKey lt 'b' and RowKey eq 'a or 1 eq 1' and S eq ''' or ''1'' eq ''1'"},
	}
	for _, test := range tests {
		store, got := serveTwoPages(t, "")
		test.scan.Limit, test.scan.Select = 7, []string{"A"}
		for _, err := range tables.ScanAll(t.Context(), store, "orchestrations", test.scan) {
			t.Fatalf("an entity or %v, want two empty pages", err)
		}
		want := []map[string]string{
			{"filter": test.filter, "select": "PartitionKey,RowKey,Timestamp,A", "top": "7", "format": format, "p": "", "r": ""},
			{"filter": test.filter, "select": "PartitionKey,RowKey,Timestamp,A", "top": "7", "format": format, "p": "1!4!cA--", "r": ""},
		}
		testenv.Equal(t, fmt.Sprintf("requests of %+v", test.scan), want, *got)
	}
}
