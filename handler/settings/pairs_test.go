package settings

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/internal/fuzzvalue"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/outbox"
)

// The destinations and routes of the outbox are read as written. A refusal names the setting.
func FuzzRoutes(f *testing.F) {
	fuzzvalue.Seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) { checkRoutes(t, fuzzvalue.New(data)) })
}

func checkRoutes(t *testing.T, s *fuzzvalue.Source) {
	t.Helper()
	type route struct {
		EventType   string `json:"eventType"`
		Tenant      string `json:"tenant"`
		Destination string `json:"destination"`
	}
	destinations, routes := map[string]any{}, []route{{"*", "", "log"}}
	destinations["log"] = map[string]any{"log": struct{}{}}
	for i := range s.Int(3) {
		name := s.Name(60) + fmt.Sprint(i)
		destinations[name] = map[string]any{"queue": map[string]string{"queue": "events", "source": "/x/{tenant}"}}
		routes = append(routes, route{"e" + fmt.Sprint(i), s.Text(128), name})
	}
	var got Outbox
	got.Options = outbox.DefaultOptions()
	document, err := json.Marshal(map[string]any{"destinations": destinations, "routes": routes})
	testenv.OK(t, err)
	text := string(document)
	if err := got.readDestinations(text, true); err != nil {
		if !strings.Contains(err.Error(), outboxSetting) {
			t.Errorf("%v does not say which setting", err)
		}
		return
	}
	var again []route
	for _, r := range got.Routes {
		again = append(again, route{r.EventType, r.TenantID, r.Destination})
	}
	if !slices.Equal(routes, again) || len(got.Destinations) != len(destinations) {
		t.Errorf("%s becomes %v", text, again)
	}
}
