package azure

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/vibedata/roundhouse/internal/keytext"
)

// Default ports of Azurite.
const (
	DefaultBlobPort  = 10000
	DefaultQueuePort = 10001
	DefaultTablePort = 10002
)

var connectionParts = map[string]bool{
	"usedevelopmentstorage":    true,
	"defaultendpointsprotocol": true,
	"accountname":              true,
	"accountkey":               true,
	"endpointsuffix":           true,
	"blobendpoint":             true,
	"queueendpoint":            true,
	"tableendpoint":            true,
	"fileendpoint":             true,
	"sharedaccesssignature":    true,
}

// FromConnectionString reads a connection string with an account key, or UseDevelopmentStorage=true. Its error names
// every bad part and shows no value.
func FromConnectionString(s string) (Account, error) {
	parts, err := splitConnection(strings.TrimPrefix(strings.TrimSpace(s), "\ufeff"))
	if err != nil {
		return Account{}, err
	}
	if strings.EqualFold(parts["usedevelopmentstorage"], "true") {
		if len(parts) > 1 {
			return Account{}, errors.New("UseDevelopmentStorage=true is the emulator and stands alone: remove it or the other parts")
		}
		return EmulatorAccount(DefaultBlobPort, DefaultQueuePort, DefaultTablePort), nil
	}
	a := Account{Name: parts["accountname"], key: parts["accountkey"], pool: newPool(serviceIdle)}
	var errs []error
	if parts["sharedaccesssignature"] != "" {
		errs = append(errs, errors.New("SharedAccessSignature is not supported: use AccountKey or an identity"))
	}
	if !validName(a.Name) {
		errs = append(errs, errors.New("AccountName is missing or malformed: set 3 to 24 lower-case letters and digits"))
	}
	if key, err := keytext.Base64(a.key); err != nil {
		errs = append(errs, errors.New("AccountKey is missing or not base64: set a key as the account shows it"))
	} else {
		a.key = base64.StdEncoding.EncodeToString(key)
	}
	scheme := or(strings.ToLower(parts["defaultendpointsprotocol"]), "https")
	suffix := or(strings.Trim(parts["endpointsuffix"], "."), "core.windows.net")
	for _, service := range a.services() {
		given := parts[service.name+"endpoint"]
		derived := scheme + "://" + a.Name + "." + service.name + "." + suffix
		if *service.endpoint, err = cleanEndpoint(or(given, derived), false); err != nil {
			errs = append(errs, fmt.Errorf("%sEndpoint (given, or made of DefaultEndpointsProtocol, AccountName and EndpointSuffix): %w", title(service.name), err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return Account{}, err
	}
	return a.withEmulator()
}

func splitConnection(s string) (map[string]string, error) {
	parts := map[string]string{}
	var errs []error
	for i, part := range strings.Split(s, ";") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		name, value, ok := strings.Cut(part, "=")
		name = strings.ToLower(strings.TrimSpace(name))
		switch {
		case !ok || !connectionParts[name]:
			errs = append(errs, fmt.Errorf("part %d is not one of the name=value parts of a connection string: use the string as the account shows it", i+1))
		case parts[name] != "":
			errs = append(errs, fmt.Errorf("part %d names %s a second time: leave one of them", i+1, name))
		default:
			parts[name] = strings.TrimSpace(value)
		}
	}
	return parts, errors.Join(errs...)
}

// serviceEndpoint is the name of a service in settings, and its endpoint in an Account.
type serviceEndpoint struct {
	name     string
	endpoint *string
}

func (a *Account) services() []serviceEndpoint {
	return []serviceEndpoint{{"blob", &a.BlobEndpoint}, {"queue", &a.QueueEndpoint}, {"table", &a.TableEndpoint}}
}

// withEmulator recognizes the emulator. Its published key must not be sent to another machine, and an account that is
// only half the emulator's is an error. An account on this machine with another name and another key is not the
// emulator. It may be the end of a tunnel to a real account, on which development features must not work. No real
// account has the published key.
func (a Account) withEmulator() (Account, error) {
	local := 0
	for _, service := range a.services() {
		if u, err := url.Parse(*service.endpoint); err == nil && isLoopback(u.Hostname()) {
			local++
		}
	}
	if local != 0 && local != 3 {
		return Account{}, errors.New("BlobEndpoint, QueueEndpoint and TableEndpoint: give all three on this machine, or none")
	}
	if a.Name == emulatorName && local == 0 {
		return Account{}, fmt.Errorf("AccountName %s is the emulator's, but the endpoints are not on this machine", emulatorName)
	}
	if local == 3 {
		a.pool = newPool(emulatorIdle)
	}
	a.Emulator = a.Name == emulatorName || local == 3 && a.key == emulatorKey
	return a, nil
}

// cleanEndpoint checks and cleans an endpoint: an absolute http or https URL with only host, port and path; https
// unless the host is this machine. The error does not quote the endpoint: a URL can hold a signature.
func cleanEndpoint(s string, alwaysTLS bool) (string, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return "", errors.New("set an http or https URL")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "", errors.New("the URL must not have a user, a query or a fragment")
	case u.Scheme == "http" && (alwaysTLS || !isLoopback(u.Hostname())):
		return "", errors.New("use https")
	case strings.Contains(u.Host, "..") || strings.HasPrefix(u.Host, "."):
		return "", errors.New("the host has a dot too many")
	case !accountPath(u.Hostname(), strings.Trim(u.Path, "/")):
		return "", errors.New("the URL must end with the host: a container, queue or table is no part of it")
	}
	return strings.TrimRight(s, "/"), nil
}

// accountPath reports whether a path is that of a service: empty, or the account's name for an address, a name of a
// local network, or the emulator.
func accountPath(host, path string) bool {
	_, err := netip.ParseAddr(host)
	return path == "" || path == emulatorName || !strings.Contains(path, "/") && (err == nil || !strings.Contains(host, "."))
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}

func validName(name string) bool {
	for _, c := range []byte(name) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return len(name) >= 3 && len(name) <= 24
}

func loopback(port int, account string) string {
	return "http://127.0.0.1:" + strconv.Itoa(port) + "/" + account
}

func or(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

func title(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
