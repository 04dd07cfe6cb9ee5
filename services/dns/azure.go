package dns

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
)

// DefaultManagement is Azure Resource Manager of the public cloud.
const DefaultManagement = "https://management.azure.com"

// The limits for calls to Azure.
const (
	zonesVersion      = "2018-05-01"
	defaultTryTimeout = 30 * time.Second
	// maxOvertaken bounds how often a change starts over because the record set changed meanwhile.
	maxOvertaken = 20
	// maxErrorText bounds each quoted part of a refusal.
	maxErrorText = 300
)

// zoneID is the resource id of a public zone.
var zoneID = regexp.MustCompile(`(?i)^/subscriptions/[0-9a-f-]{36}/resourceGroups/[\w().-]{1,90}/providers/Microsoft\.Network/dnsZones/([a-z0-9._-]{1,253})$`)

// Azure changes a public zone of Azure DNS through Azure Resource Manager. Its identity needs the role DNS Zone
// Contributor on the zone, or on the record sets that it changes.
type Azure struct {
	zone, endpoint string
	pipeline       runtime.Pipeline
}

var _ Provider = (*Azure)(nil)

// NewAzure returns a provider for the zone with the resource id; endpoint is DefaultManagement when "". It sends no
// request yet. opts may be nil.
func NewAzure(zone, id, endpoint string, credential azcore.TokenCredential, opts *policy.ClientOptions) (*Azure, error) {
	if endpoint == "" {
		endpoint = DefaultManagement
	}
	var errs []error
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" {
		errs = append(errs, errors.New("dns: the endpoint of Azure must be https://{host} and nothing more"))
	}
	if match := zoneID.FindStringSubmatch(id); match == nil || !strings.EqualFold(match[1], zone) {
		errs = append(errs, fmt.Errorf("dns: zoneId must be the resource id of the zone, /subscriptions/{id}/resourceGroups/{name}/providers/Microsoft.Network/dnsZones/%s", zone))
	}
	if credential == nil {
		errs = append(errs, errors.New("dns: no credential"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	var options policy.ClientOptions
	if opts != nil {
		options = *opts
	}
	if options.Retry.TryTimeout == 0 {
		options.Retry.TryTimeout = defaultTryTimeout
	}
	endpoint = "https://" + u.Host
	auth := runtime.NewBearerTokenPolicy(credential, []string{endpoint + "/.default"}, nil)
	return &Azure{zone: zone, endpoint: endpoint + id, pipeline: runtime.NewPipeline("dns", "v1", runtime.PipelineOptions{PerRetry: []policy.Policy{auth}}, &options)}, nil
}

// recordSet is the TXT records of a name, as Azure writes them. Its other members are kept unchanged.
type recordSet struct {
	ETag       string `json:"etag,omitempty"`
	Properties struct {
		Metadata map[string]string `json:"metadata,omitempty"`
		TTL      int64             `json:"TTL"`
		Records  []txtRecord       `json:"TXTRecords"`
	} `json:"properties"`
}

// txtRecord is a value in pieces of at most 255 characters.
type txtRecord struct {
	Value []string `json:"value"`
}

func (r txtRecord) is(value string) bool { return strings.Join(r.Value, "") == value }

// Add implements Provider.
func (a *Azure) Add(ctx context.Context, name, value string) error {
	return a.change(ctx, name, func(set *recordSet) bool {
		if slices.ContainsFunc(set.Properties.Records, func(r txtRecord) bool { return r.is(value) }) {
			return false
		}
		set.Properties.Records = append(set.Properties.Records, txtRecord{[]string{value}})
		return true
	})
}

// Remove implements Provider.
func (a *Azure) Remove(ctx context.Context, name, value string) error {
	return a.change(ctx, name, func(set *recordSet) bool {
		before := len(set.Properties.Records)
		set.Properties.Records = slices.DeleteFunc(set.Properties.Records, func(r txtRecord) bool { return r.is(value) })
		return len(set.Properties.Records) < before
	})
}

// errOvertaken means that the record set has changed since it was read.
var errOvertaken = errors.New("overtaken")

// change reads a record set, changes it, and writes it back if it is unchanged.
func (a *Azure) change(ctx context.Context, name string, apply func(*recordSet) bool) error {
	relative, below := strings.CutSuffix(name, "."+a.zone)
	if !below || relative == "" {
		return fmt.Errorf("%w: %s is not below the zone", ErrRefused, name)
	}
	address := a.endpoint + "/TXT/" + url.PathEscape(relative) + "?api-version=" + zonesVersion
	for range maxOvertaken {
		var set recordSet
		err := a.do(ctx, http.MethodGet, address, nil, nil, &set)
		if err != nil && !errors.Is(err, errNotFound) {
			return err
		}
		if !apply(&set) {
			return nil
		}
		if err = a.write(ctx, address, set); !errors.Is(err, errOvertaken) {
			return err
		}
	}
	return fmt.Errorf("%w: others change %s all the time", ErrUnavailable, name)
}

// write replaces an unchanged record set, creates a missing one, and removes one that has become empty.
func (a *Azure) write(ctx context.Context, address string, set recordSet) error {
	header := http.Header{"If-Match": {set.ETag}}
	if set.ETag == "" {
		header = http.Header{"If-None-Match": {"*"}}
		set.Properties.TTL = recordTTL
	}
	set.ETag = ""
	if len(set.Properties.Records) == 0 {
		err := a.do(ctx, http.MethodDelete, address, header, nil, nil)
		if errors.Is(err, errNotFound) {
			return nil
		}
		return err
	}
	err := a.do(ctx, http.MethodPut, address, header, set, nil)
	if errors.Is(err, errNotFound) {
		return fmt.Errorf("%w: the zone is not there: %w", ErrRefused, err)
	}
	return err
}

// errNotFound means that the record set or the zone does not exist, which a read does not distinguish.
var errNotFound = errors.New("not found")

// do sends one request; body and into may be nil.
func (a *Azure) do(ctx context.Context, method, address string, header http.Header, body, into any) error {
	req, err := runtime.NewRequest(ctx, method, address)
	if err == nil && body != nil {
		err = runtime.MarshalAsJSON(req, body)
	}
	if err != nil {
		return err
	}
	for name, values := range header {
		req.Raw().Header[name] = values
	}
	resp, err := a.pipeline.Do(req)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	payload, err := runtime.Payload(resp)
	if err != nil {
		return fmt.Errorf("%w: read the answer: %w", ErrUnavailable, err)
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return refusal(resp.StatusCode, payload)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(payload, into); err != nil {
		return fmt.Errorf("%w: the answer is no record set: %w", ErrUnavailable, err)
	}
	return nil
}

// refusal makes an error of an answer. It keeps only the service's code and message.
func refusal(status int, payload []byte) error {
	type said struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	var body struct {
		said       // the form of Azure DNS
		Error said `json:"error"` // the form of Resource Manager
	}
	text := fmt.Sprintf("status %d", status)
	if json.Unmarshal(payload, &body) == nil {
		for _, part := range []string{body.Code, body.Message, body.Error.Code, body.Error.Message} {
			if part != "" {
				text += ": " + strings.ToValidUTF8(part[:min(len(part), maxErrorText)], "")
			}
		}
	}
	return fmt.Errorf("%w: %s", kindOf(status), text)
}

// kindOf returns the error of a status.
func kindOf(status int) error {
	switch {
	case status == http.StatusNotFound:
		return errNotFound
	case status == http.StatusPreconditionFailed:
		return errOvertaken
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return ErrForbidden
	case status == http.StatusConflict, status == http.StatusTooManyRequests, status >= http.StatusInternalServerError:
		return ErrUnavailable
	default:
		return ErrRefused
	}
}
