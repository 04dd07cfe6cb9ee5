package handler

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler/function"
	"github.com/vibedata/roundhouse/handler/settings"
)

// Manifest describes the parts of an app, for tools: the command manifest prints it, as JSON.
type Manifest struct {
	// Engines are the engines.
	Engines []engine.Description `json:"engines"`
	// Functions are the functions of the app, by name, each as in its function.json.
	Functions map[string]function.Function `json:"functions"`
	// Settings are the names of all settings that the app reads.
	Settings []string `json:"settings"`
	// Required are those that an app in Azure cannot start without, apart from the storage account.
	Required []string `json:"required"`
	// Roles are the roles that the identity of the app needs in Azure.
	Roles []settings.Role `json:"roles"`
	// Access lists the permissions.
	Access Access `json:"access"`
}

// Describe describes an app. It uses the settings that lookup finds, and needs none.
func Describe(a App, lookup func(name string) (string, bool)) (Manifest, error) {
	h, err := New(a, Config{Lookup: offline(lookup)})
	if err != nil {
		return Manifest{}, err
	}
	defer h.Close()
	return h.Manifest(), nil
}

// manifest describes a program.
func (p *parts) manifest(functions []function.Function) Manifest {
	m := Manifest{Engines: p.descriptions(), Functions: map[string]function.Function{}, Settings: p.reader.Names(), Required: p.reader.Demanded(), Roles: p.reader.Roles(), Access: p.access()}
	for _, f := range functions {
		m.Functions[f.Name] = f
	}
	return m
}

func (p *parts) descriptions() []engine.Description {
	all := []engine.Description{}
	for _, d := range p.definitions {
		all = append(all, d.Describe())
	}
	return all
}

// write prints a manifest.
func (m Manifest) write(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(m); err != nil {
		return fmt.Errorf("write the manifest: %w", err)
	}
	return nil
}

// offline reads settings as on a machine without any: the storage account is the emulator's, which gets no requests,
// and the key vault is missing. Engines and functions do not depend on these.
func offline(lookup func(string) (string, bool)) func(string) (string, bool) {
	instead := map[string]string{"AzureWebJobsStorage": "UseDevelopmentStorage=true", "FUNCTIONS_CUSTOMHANDLER_PORT": "0", "ROUNDHOUSE_KEY_VAULT_URL": "", "ROUNDHOUSE_PAYLOAD_KEY": ""}
	return func(name string) (string, bool) {
		if value, ok := instead[name]; ok {
			return value, true
		}
		return lookup(name)
	}
}
