package main

import (
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/alerts"
	"github.com/vibedata/roundhouse/engine/health"
	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/engine/provisioning"
	"github.com/vibedata/roundhouse/engine/spn"
	"github.com/vibedata/roundhouse/engine/tls"
	"github.com/vibedata/roundhouse/engine/tls/acme"
	"github.com/vibedata/roundhouse/engine/update"
	"github.com/vibedata/roundhouse/engine/updatepublisher"
	"github.com/vibedata/roundhouse/services/entra"
	"github.com/vibedata/roundhouse/services/marketplace"
)

// distributionTimeout bounds one request that tells a target about a certificate.
const distributionTimeout = 30 * time.Second

// engines are the definitions of the deployment context.
func engines(s Settings, st stores, events hmac.Publisher, log *slog.Logger) ([]engine.Definition, error) {
	alarms, err := alerts.New(alerts.Config{Rules: s.Outside.AlertRules})
	if err != nil {
		return nil, err
	}
	if s.Context == managedApp {
		updates, updatesErr := updateSteps(s, st)
		checks, checksErr := healthSteps(s, st)
		if err := errors.Join(updatesErr, checksErr); err != nil {
			return nil, err
		}
		return []engine.Definition{update.Definition(updates), health.Definition(checks), alerts.Definition(alarms)}, nil
	}
	credential, err := s.Storage.Identity()
	if err != nil {
		return nil, err
	}
	keys, keysErr := hmac.New(hmac.Config{Vault: st.vault, Tables: st.tables, Publisher: events, Timing: &s.HMAC})
	principals, principalsErr := spnSteps(s, st, credential)
	certificates, certificatesErr := tlsSteps(s, st, log)
	instances, instancesErr := provisioningSteps(s, st, credential)
	releases, releasesErr := updatepublisher.New(updatepublisher.Config{Registry: st.registry, Releases: s.Update.Releases,
		DefaultRing: s.Update.DefaultRing, Wanted: active})
	if err := errors.Join(keysErr, principalsErr, certificatesErr, instancesErr, releasesErr); err != nil {
		return nil, err
	}
	return []engine.Definition{hmac.Definition(keys), spn.Definition(principals), tls.Definition(certificates),
		provisioning.Definition(instances), updatepublisher.Definition(releases), alerts.Definition(alarms)}, nil
}

func updateSteps(s Settings, st stores) (*update.Steps, error) {
	components, err := update.NewHTTP(s.Update.Endpoint, nil)
	if err != nil {
		return nil, err
	}
	return update.New(update.Config{Components: components, Registry: st.registry, VerifyTimeout: s.Update.VerifyTimeout,
		VerifyInterval: s.Update.VerifyInterval, LockDuration: s.Update.LockDuration})
}

func spnSteps(s Settings, st stores, credential azcore.TokenCredential) (*spn.Steps, error) {
	graph, graphErr := entra.NewGraph(s.SPN.GraphURL, credential, nil)
	login, loginErr := entra.NewLogin(s.SPN.LoginURL, s.SPN.Tenant, s.SPN.GraphURL, nil)
	if err := errors.Join(graphErr, loginErr); err != nil {
		return nil, err
	}
	return spn.New(spn.Config{Directory: graph, Login: login, Vault: st.vault, Values: st.vault,
		Owner: s.SPN.Owner, Overlap: s.SPN.Overlap, Lifetime: s.SPN.Lifetime})
}

func tlsSteps(s Settings, st stores, log *slog.Logger) (*tls.Steps, error) {
	authority, err := acme.New(acme.Config{Directory: s.TLS.Directory, Contact: s.TLS.Contact, Vault: st.vault,
		Solvers: []acme.Solver{acme.HTTP01{Tables: st.tables}}, Log: log})
	if err != nil {
		return nil, err
	}
	return tls.New(tls.Config{Vault: st.certificates, Authority: authority, Targets: s.TLS.Targets, Tables: st.tables,
		Distributor: tls.HTTPDistributor{Client: &http.Client{Timeout: distributionTimeout}}})
}

func provisioningSteps(s Settings, st stores, credential azcore.TokenCredential) (*provisioning.Steps, error) {
	market, err := marketplace.New(marketplace.Config{Endpoint: s.Outside.MarketplaceURL, Management: s.Outside.ManagementURL, Credential: credential})
	if err != nil {
		return nil, err
	}
	return provisioning.New(provisioning.Config{Marketplace: market, Registry: instances{st.registry}, Plans: s.Outside.Plans,
		BootstrapDeadline: s.Outside.BootstrapDeadline})
}

func healthSteps(s Settings, st stores) (*health.Steps, error) {
	checker, err := health.NewHTTP(s.Update.HealthEndpoint, nil)
	if err != nil {
		return nil, err
	}
	return health.New(health.Config{Checker: checker, Registry: st.registry, CheckTimeout: s.Update.HealthTimeout})
}
