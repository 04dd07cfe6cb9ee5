package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/vibedata/roundhouse/engine/tls/acme"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/settings"
	"github.com/vibedata/roundhouse/services/dns"
	"github.com/vibedata/roundhouse/services/secrets"
)

const (
	// zonesSetting is a JSON object of the zones for challenges, by name.
	zonesSetting = "ROUNDHOUSE_TLS_DNS"
	// resolverSetting is the name server for names outside of these zones.
	resolverSetting = "ROUNDHOUSE_TLS_DNS_RESOLVER"
	// challengeSetting is the preferred challenge.
	challengeSetting = "ROUNDHOUSE_TLS_CHALLENGE"
	// managementSetting is the address of Azure Resource Manager.
	managementSetting = "ROUNDHOUSE_MANAGEMENT_URL"
)

// The possible challenges.
const (
	byHTTP = "http-01"
	byDNS  = "dns-01"
)

// atZone is the scope of the role for Azure DNS: the zone, in any resource group.
const atZone settings.Scope = "dns-zone"

// zoneDocument is a zone in zonesSetting, with one of Azure and RFC2136.
type zoneDocument struct {
	Azure *struct {
		ZoneID string `json:"zoneId"`
	} `json:"azure"`
	RFC2136 *struct {
		Server    string `json:"server"`
		Key       string `json:"key"`
		Algorithm string `json:"algorithm"`
		// Secret is the name of the vault secret with the key.
		Secret string `json:"secret"`
	} `json:"rfc2136"`
	Nameservers []string `json:"nameservers"`
}

// solversOf returns the solvers of challenges, the preferred one first. wildcards reports whether a scheduled
// certificate has a wildcard, which requires DNS.
func solversOf(p *handler.Platform, overHTTP acme.HTTP01, wildcards bool) []acme.Solver {
	r := p.Settings
	r.NeedsRole(settings.Role{Scope: atZone, Name: "DNS Zone Contributor", ID: "befefa01-2a29-4197-83a8-272ff33ce314", With: zonesSetting})
	choice := r.Text(challengeSetting)
	if choice != "" && choice != byHTTP && choice != byDNS {
		r.Reject(challengeSetting, fmt.Errorf("set %s or %s", byHTTP, byDNS))
	}
	zones := zonesOf(p)
	switch {
	case zones == nil && choice == byDNS:
		r.Reject(challengeSetting, fmt.Errorf("%s takes %s", byDNS, zonesSetting))
	case zones == nil && wildcards:
		r.Reject(rotationsSetting, fmt.Errorf("a wildcard of tls takes %s", zonesSetting))
	}
	if zones == nil {
		return []acme.Solver{overHTTP}
	}
	overDNS := acme.DNS01{Tables: p.Tables, Zones: zones}
	if choice == byDNS {
		return []acme.Solver{overDNS}
	}
	return []acme.Solver{overHTTP, overDNS}
}

// zonesOf reads the zones; nil for none, or for invalid ones, whose errors are recorded.
func zonesOf(p *handler.Platform) *dns.Zones {
	var document map[string]zoneDocument
	resolver := p.Settings.Text(resolverSetting)
	if !p.Settings.JSON(zonesSetting, &document) || len(document) == 0 {
		return nil
	}
	config := dns.Config{Zones: map[string]dns.Zone{}, Resolver: resolver}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(document)) {
		provider, err := providerOf(p, name, document[name])
		if err != nil {
			errs = append(errs, fmt.Errorf("%.80q: %w", name, err))
			continue
		}
		config.Zones[name] = dns.Zone{Provider: provider, Nameservers: document[name].Nameservers}
	}
	zones, err := dns.New(config)
	if err = errors.Join(append(errs, err)...); err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			p.Settings.Reject(zonesSetting, errors.New(line))
		}
		return nil
	}
	return zones
}

// providerOf makes the provider of a zone.
func providerOf(p *handler.Platform, zone string, d zoneDocument) (dns.Provider, error) {
	switch {
	case (d.Azure == nil) == (d.RFC2136 == nil):
		return nil, errors.New("set azure or rfc2136, one of them")
	case d.Azure != nil:
		credential, err := p.Identity()
		if err != nil {
			return nil, err
		}
		return dns.NewAzure(zone, d.Azure.ZoneID, p.Settings.Text(managementSetting), credential, nil)
	case !secrets.ValidName(d.RFC2136.Secret):
		return nil, errors.New("rfc2136: secret: give the name of a secret of the vault")
	}
	key := dns.Key{Name: d.RFC2136.Key, Algorithm: d.RFC2136.Algorithm, Secret: func(ctx context.Context) ([]byte, error) {
		return secrets.Newest(ctx, p.Secrets, d.RFC2136.Secret)
	}}
	return dns.NewRFC2136(zone, d.RFC2136.Server, key)
}
