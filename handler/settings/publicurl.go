package settings

import (
	"fmt"
	"net"
	"net/url"
	"strings"
)

// publicURLSetting reads the app's address for clients. A host sets its own name in WEBSITE_HOSTNAME: Azure one with
// a certificate, a host in development one of this machine.
func publicURLSetting(r *Reader) (string, error) {
	const name, platform = "ROUNDHOUSE_PUBLIC_URL", "WEBSITE_HOSTNAME"
	if text := r.Text(name); text != "" {
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "" ||
			u.Scheme != "https" && (u.Scheme != "http" || !loopback(u)) {
			return "", fmt.Errorf("%s is not the address of an app: set it to https:// and a host name, such as https://app.example.com", name)
		}
		return u.Scheme + "://" + u.Host, nil
	}
	text := r.Text(platform)
	if text == "" {
		return "", nil
	}
	u, err := url.Parse("https://" + text)
	if err != nil || u.Host != text {
		return "", fmt.Errorf("%s is %.100q and no host name: set ROUNDHOUSE_PUBLIC_URL to the address of the app", platform, text)
	}
	if loopback(u) {
		u.Scheme = "http"
	}
	return u.String(), nil
}

// loopback reports whether an address is on this machine.
func loopback(u *url.URL) bool {
	ip := net.ParseIP(u.Hostname())
	return strings.EqualFold(u.Hostname(), "localhost") || ip != nil && ip.IsLoopback()
}
