package settings

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/services/outbound"
)

// defaultSource is the source attribute of the events. It contains the tenant, because keys are unique within one
// only.
const defaultSource = "/roundhouse/{tenant}"

// Destination is a destination in ROUNDHOUSE_OUTBOX: one of HTTP, Instance, Queue and Log.
type Destination struct {
	HTTP *HTTPDestination `json:"http"`
	// Instance sends events to the addresses of their instances in the registry. It is an HTTP destination without a
	// URL, always structured, whose secrets may be those of instances (outbound.Auth.For).
	Instance *HTTPDestination  `json:"instance"`
	Queue    *QueueDestination `json:"queue"`
	Log      *struct{}         `json:"log"`
}

// Origin names the events of a destination, as in outbox.HTTPConfig.
type Origin struct {
	Source  string `json:"source"`
	Subject string `json:"subject"`
}

// HTTPDestination is an address for events, with the sender's authentication. URL is required, and may contain a
// credential.
type HTTPDestination struct {
	Origin
	outbound.Auth
	URL            string   `json:"url"`
	Structured     bool     `json:"structured"`
	Allow          []string `json:"allow"`
	AllowPlaintext bool     `json:"allowPlaintext"`
	Timeout        duration `json:"timeout"`
}

// QueueDestination is a queue of the storage account for events.
type QueueDestination struct {
	Origin
	Queue string `json:"queue"`
}

// duration is a Go duration as JSON text.
type duration time.Duration

func (d *duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil || parsed <= 0 {
		return fmt.Errorf("%.32q is no Go duration of more than 0, such as 10s", text)
	}
	*d = duration(parsed)
	return nil
}

// readDestinations reads and checks the document of destinations and routes. No error contains a URL: it may contain
// a credential.
func (o *Outbox) readDestinations(text string, required bool) error {
	if text == "" {
		if required {
			return fmt.Errorf(`%s is not set: set it to {"destinations": {...}, "routes": [...]} as docs/settings.md describes; `+
				"only the storage emulator can do without", outboxSetting)
		}
		o.Destinations = map[string]Destination{"log": {Log: &struct{}{}}}
		o.Routes = []outbox.Route{{EventType: "*", Destination: "log"}}
		return nil
	}
	var document struct {
		Destinations map[string]Destination `json:"destinations"`
		Routes       []struct {
			EventType   string `json:"eventType"`
			Tenant      string `json:"tenant"`
			Destination string `json:"destination"`
		} `json:"routes"`
	}
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&document)
	if err == nil && decoder.More() {
		err = errors.New("there is more behind the document")
	}
	if err != nil {
		return fmt.Errorf("%s is no document as docs/settings.md describes it: %w", outboxSetting, unexpectedEnd(err))
	}
	o.Destinations = document.Destinations
	for _, r := range document.Routes {
		o.Routes = append(o.Routes, outbox.Route{EventType: r.EventType, TenantID: r.Tenant, Destination: r.Destination})
	}
	return o.checkDestinations()
}

func unexpectedEnd(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("it ends too early")
	}
	return err
}

// checkDestinations returns all errors of destinations and routes, with their paths in the document.
func (o *Outbox) checkDestinations() error {
	var errs []error
	there := outbox.Destinations{}
	for _, name := range slices.Sorted(maps.Keys(o.Destinations)) {
		there[name] = outbox.NewLog(nil) // the router only checks that it exists
		errs = append(errs, within("destinations."+name, o.Destinations[name].validate(o.Options.DeliveryTimeout)))
	}
	if len(o.Routes) == 0 {
		errs = append(errs, errors.New("routes: there is none, and so no event could leave"))
	}
	_, err := outbox.NewRouter(o.Routes, there)
	return within(outboxSetting, errors.Join(append(errs, within("routes", err))...))
}

func (d Destination) validate(deliveryTimeout time.Duration) error {
	var errs []error
	kinds := 0
	if d.HTTP != nil {
		kinds++
		errs = append(errs, within("http", d.HTTP.validate(deliveryTimeout)))
	}
	if d.Instance != nil {
		kinds++
		errs = append(errs, within("instance", d.Instance.validateInstance(deliveryTimeout)))
	}
	if d.Queue != nil {
		kinds++
		// The store is a placeholder: the name is not checked with it.
		errs = append(errs, within("queue", d.Queue.Config(queues.NewMemory(), nil).Validate()))
	}
	if d.Log != nil {
		kinds++
	}
	if kinds != 1 {
		errs = append(errs, errors.New("http, instance, queue, log: it must have exactly one of them"))
	}
	return errors.Join(errs...)
}

// anyInstance is a placeholder for an instance and its address.
const (
	anyInstance = "instance"
	anyAddress  = "https://instance.invalid/"
)

func (h HTTPDestination) validateInstance(deliveryTimeout time.Duration) error {
	if h.URL != "" {
		return errors.New("url: leave it out, the registry has the addresses of instances (endpoints.events)")
	}
	if h.Audience != "" || h.ClientCertificate != "" {
		return errors.New("audience, clientCertificate: leave them out, the app's own credentials go to no address of the registry, which operators of other tenants may write: sign with signingKeys")
	}
	return errors.Join(h.ValidateFor(), h.Of(anyInstance, anyAddress).validate(deliveryTimeout))
}

// Of returns the destination of one instance, at its address, which gets no credentials of the app.
func (h HTTPDestination) Of(instanceID, address string) HTTPDestination {
	h.Auth, h.URL, h.Structured = h.For(instanceID), address, true
	h.Audience, h.ClientCertificate = "", ""
	return h
}

func (h HTTPDestination) validate(deliveryTimeout time.Duration) error {
	errs := []error{h.Config(nil).Validate(), h.Auth.Validate()}
	if time.Duration(h.Timeout) > deliveryTimeout {
		errs = append(errs, fmt.Errorf("timeout: %v is longer than a delivery may take, %v (%s_DELIVERY_TIMEOUT)", time.Duration(h.Timeout), deliveryTimeout, outboxSetting))
	}
	return errors.Join(errs...)
}

// Config returns the transport's configuration; keys may be nil.
func (h HTTPDestination) Config(keys outbox.SigningKeys) outbox.HTTPConfig {
	return outbox.HTTPConfig{URL: h.URL, Source: cmp.Or(h.Source, defaultSource), Subject: h.Subject, Structured: h.Structured, Keys: keys,
		Timeout: time.Duration(h.Timeout), AllowPlaintext: h.AllowPlaintext, Allow: h.Allow}
}

// Config returns the transport's configuration over its stores.
func (q QueueDestination) Config(messages queues.Store, data blobs.Store) outbox.QueueConfig {
	return outbox.QueueConfig{Queue: q.Queue, Queues: messages, Blobs: data, Source: cmp.Or(q.Source, defaultSource), Subject: q.Subject}
}

// within adds its place in the settings to every line of an error.
func within(where string, err error) error {
	if err == nil {
		return nil
	}
	var errs []error
	for line := range strings.SplitSeq(err.Error(), "\n") {
		errs = append(errs, errors.New(where+": "+line))
	}
	return errors.Join(errs...)
}
