package main

import (
	"errors"
	"fmt"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/engine/spn"
	"github.com/vibedata/roundhouse/entra"
)

// engines are the definitions of the deployment context.
func engines(s Settings, st stores, events hmac.Publisher) ([]engine.Definition, error) {
	if s.Context != publisher {
		return nil, fmt.Errorf("ROUNDHOUSE_CONTEXT: this version has no engine of the context %s, only of %s", s.Context, publisher)
	}
	keys, err := hmac.New(hmac.Config{Vault: st.secrets, Tables: st.tables, Publisher: events})
	if err != nil {
		return nil, err
	}
	principals, err := spnEngine(s, st)
	if err != nil {
		return nil, err
	}
	return []engine.Definition{hmac.Definition(keys), principals}, nil
}

func spnEngine(s Settings, st stores) (engine.Definition, error) {
	credential, err := s.Storage.Identity()
	if err != nil {
		return engine.Definition{}, err
	}
	graph, graphErr := entra.NewGraph(s.SPN.GraphURL, credential, nil)
	login, loginErr := entra.NewLogin(s.SPN.LoginURL, s.SPN.Tenant, s.SPN.GraphURL, nil)
	if err := errors.Join(graphErr, loginErr); err != nil {
		return engine.Definition{}, err
	}
	steps, err := spn.New(spn.Config{Directory: graph, Login: login, Vault: st.secrets, Values: st.secretValues,
		Owner: s.SPN.Owner, Overlap: s.SPN.Overlap, Lifetime: s.SPN.Lifetime})
	if err != nil {
		return engine.Definition{}, err
	}
	return spn.Definition(steps), nil
}
