package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/google/uuid"
	"github.com/spf13/pflag"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/client"
	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/devkey"
	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/direct"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/payload"
)

const (
	// localURL is the address of the app under make run.
	localURL = "http://127.0.0.1:7071"
	// storageSetting is the app's setting of the storage account.
	storageSetting = "AzureWebJobsStorage"
	// FromSettings is the value of --storage for the account of the setting.
	FromSettings = "settings"
	production   = "production"
)

// globals are the flags of every command.
type globals struct {
	url, key, entra, storage, environment, output string
	timeout                                       time.Duration
	wide, verbose                                 bool
}

func (g *globals) register(f *pflag.FlagSet) {
	f.StringVar(&g.url, "url", "", "the `address` of the app (ROUNDHOUSE_URL; else "+localURL+")")
	f.StringVar(&g.key, "key", "", "a function `key`; other people on this machine can see it here, so better set ROUNDHOUSE_KEY")
	f.StringVar(&g.entra, "entra", "", "sign in with Microsoft Entra ID for this `scope`, such as api://app/.default (ROUNDHOUSE_ENTRA)")
	f.StringVar(&g.storage, "storage", "", "go straight to storage: a `connection` string, or \"settings\" for the AzureWebJobsStorage settings")
	f.StringVar(&g.environment, "environment", "", "the `name` of the environment (ROUNDHOUSE_ENVIRONMENT); all but this machine's is production unless named")
	f.StringVarP(&g.output, "output", "o", "table", "`table`, or json: the data as the API gives it")
	f.DurationVar(&g.timeout, "timeout", 30*time.Second, "how long one request may take")
	f.BoolVar(&g.wide, "wide", false, "do not cut columns to the width of the terminal")
	f.BoolVarP(&g.verbose, "verbose", "v", false, "log to standard error: what goes wrong inside, and the ids of requests")
}

func (g *globals) validate() error {
	if g.output != "table" && g.output != "json" {
		return fmt.Errorf("-o %.32q: use table or json", g.output)
	}
	if g.timeout <= 0 {
		return errors.New("--timeout: use a duration above 0, such as 30s")
	}
	return nil
}

// setting returns a flag, or else the environment.
func (a *app) setting(flag, name string) string {
	if flag == "" {
		flag, _ = a.Lookup(name)
	}
	return flag
}

func (a *app) asJSON() bool { return a.flags.output == "json" }

// log logs internal failures.
func (a *app) log() *slog.Logger {
	if !a.flags.verbose {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(a.Stderr, nil))
}

// operator returns the operator's name for records.
func (a *app) operator() string {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	return printable(name)
}

// api returns the API client for its address.
func (a *app) api(context.Context) (*client.Client, error) {
	c := client.Config{URL: a.setting(a.flags.url, "ROUNDHOUSE_URL"), Key: a.setting(a.flags.key, "ROUNDHOUSE_KEY"), Scope: a.setting(a.flags.entra, "ROUNDHOUSE_ENTRA")}
	if c.URL == "" {
		c.URL = localURL
	}
	if address, err := url.Parse(c.URL); err == nil && c.Key == "" {
		c.Key = devkey.Find(".", address)
	}
	if c.Scope != "" {
		credential, err := azidentity.NewDefaultAzureCredential(nil)
		if err != nil {
			return nil, fmt.Errorf("find an identity: %w", err)
		}
		c.Credential = credential
	}
	made, err := client.New(c)
	return made, Mark(ErrUsage, err)
}

// outboxEngine is the engine name of every app's dead events.
const outboxEngine = "outbox"

// either returns the API client for its address, or with --storage the part of the API that needs no app.
func (a *app) either(ctx context.Context) (*client.Client, error) {
	if a.flags.storage == "" {
		return a.api(ctx)
	}
	s, err := a.stores()
	if err != nil {
		return nil, err
	}
	_, names, err := registered(ctx, s)
	if err != nil {
		return nil, err
	}
	names = append(names, engine.SignalEngine, outboxEngine) // even if the app has never run
	transport, err := direct.New(direct.Config{Tables: s.Tables, Queues: s.Queues, Blobs: s.Blobs, Account: s.Account.Name, Engines: names, By: a.operator(), Log: a.log(), Now: a.Now})
	if err != nil {
		return nil, err
	}
	return client.New(client.Config{URL: direct.Address, Transport: transport})
}

// Storage is the storage account of the program.
type Storage struct {
	Account azure.Account
	Tables  *azure.Tables
	Queues  *azure.Queues
	Blobs   *azure.Blobs
}

// account returns the selected storage account. On this machine it is the emulator unless a setting names another.
func (a *app) account() (azure.Account, error) {
	if text := a.flags.storage; text != "" && text != FromSettings {
		found, err := azure.FromConnectionString(text)
		return found, Mark(ErrUsage, within("--storage", err))
	}
	_, given := a.Lookup(storageSetting)
	for _, suffix := range []string{"__accountName", "__blobServiceUri", "__queueServiceUri", "__tableServiceUri"} {
		_, more := a.Lookup(storageSetting + suffix)
		given = given || more
	}
	if !given && a.flags.storage == "" && a.here() {
		return azure.FromConnectionString("UseDevelopmentStorage=true")
	}
	found, err := azure.FromEnvironment(a.Lookup, storageSetting)
	return found, Mark(ErrUsage, err)
}

func within(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// stores opens the storage account. It sends no request yet.
func (a *app) stores() (Storage, error) {
	found, err := a.account()
	if err != nil {
		return Storage{}, err
	}
	a.opened = append(a.opened, found)
	s := Storage{Account: found}
	var errs [3]error
	s.Tables, errs[0] = azure.NewTables(found)
	s.Queues, errs[1] = azure.NewQueues(found)
	s.Blobs, errs[2] = azure.NewBlobs(found)
	return s, errors.Join(errs[:]...)
}

// here reports whether the address of the app is this machine's.
func (a *app) here() bool {
	address := a.setting(a.flags.url, "ROUNDHOUSE_URL")
	u, err := url.Parse(address)
	return address == "" || err == nil && client.Loopback(u)
}

// production reports whether dangerous commands are dry runs: everywhere but on this machine, unless the environment
// has another name.
func (a *app) production(storage bool) bool {
	if name := a.setting(a.flags.environment, "ROUNDHOUSE_ENVIRONMENT"); name != "" {
		return strings.EqualFold(name, production)
	}
	if !storage {
		return !a.here()
	}
	found, err := a.account()
	return err != nil || !found.Emulator
}

// bounded returns a context for one request.
func (a *app) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, a.flags.timeout)
}

// ask sends a request to c.
func (a *app) ask(ctx context.Context, c *client.Client, r client.Request) (client.Answer, error) {
	ctx, cancel := a.bounded(ctx)
	defer cancel()
	if r.Method != http.MethodGet && r.CorrelationID == "" {
		r.CorrelationID = uuid.NewString()
		// The app's log has its actions under this id.
		a.log().Info("request", "method", r.Method, "path", strings.Join(r.Path, "/"), "correlationId", r.CorrelationID)
	}
	return c.Do(ctx, r)
}

// look sends a query to c and decodes the answer.
func look[T any](ctx context.Context, a *app, c *client.Client, query url.Values, path ...string) (T, error) {
	var v T
	answer, err := a.ask(ctx, c, client.Request{Method: http.MethodGet, Path: path, Query: query})
	if err == nil {
		err = decodeInto(answer.Data, &v)
	}
	return v, err
}

func decodeInto(data json.RawMessage, into any) error {
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("the answer is not what this version of roundhouse expects: %w", err)
	}
	return nil
}

// input reads a JSON argument: the text itself, @file, or - for standard input. "" is nil.
func (a *app) input(flag, text string) (json.RawMessage, error) {
	var data []byte
	var err error
	name, isFile := strings.CutPrefix(text, "@")
	switch {
	case text == "":
		return nil, nil
	case text == "-":
		data, err = io.ReadAll(io.LimitReader(a.Stdin, payload.MaxBytes+1))
	case isFile:
		data, err = os.ReadFile(name) // a file of the operator's own choice
	default:
		data = []byte(text)
	}
	if err != nil {
		return nil, Mark(ErrUsage, fmt.Errorf("--%s: %w", flag, err))
	}
	data = bytes.TrimPrefix(data, []byte(payload.ByteOrderMark)) // some editors add it to files
	if err := payload.Check(data); err != nil {
		return nil, Mark(ErrUsage, fmt.Errorf("--%s is %w", flag, err))
	}
	if !json.Valid(data) {
		return nil, Mark(ErrUsage, fmt.Errorf("--%s is no JSON: give JSON, @file, or - for standard input", flag))
	}
	return data, nil
}
