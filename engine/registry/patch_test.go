package registry_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/engine/registry"
)

// A patch is merged as in RFC 7396; forbidden and invalid fields are named, and the document stays unchanged.
func TestPatch(t *testing.T) {
	t.Parallel()
	const document = `{"instanceId":"i1","tenantId":"t1","ring":"stable","contact":{"name":"ann","phone":12345678901234567890},"version":"1.0",
		"engineTablesConfig":{"retentionDays":30,"retention":{"health":7,"update":60},"region":"west"},"instanceLock":{"lockJobId":"j","lockDurationSeconds":60,"lockUntilUtc":"2026-11-21T13:00:00Z"},"registryVersion":3}`
	rest := func(more string) string {
		return `{"contact":{"name":"ann","phone":12345678901234567890},` + more + `"instanceId":"i1","instanceLock":{"lockDurationSeconds":60,"lockJobId":"j","lockUntilUtc":"2026-11-21T13:00:00Z"},"registryVersion":3,"ring":"stable","tenantId":"t1","version":"1.0"}`
	}
	tablesAsTheyWere := `"engineTablesConfig":{"region":"west","retention":{"health":7,"update":60},"retentionDays":30},`
	for name, c := range map[string]struct {
		patch, want string
		wrong       []string
	}{
		"nothing":                {`{}`, rest(tablesAsTheyWere), nil},
		"one of an object":       {`{"engineTablesConfig":{"retention":{"health":null,"hmac":3}}}`, rest(`"engineTablesConfig":{"region":"west","retention":{"hmac":3,"update":60},"retentionDays":30},`), nil},
		"all of an object":       {`{"engineTablesConfig":{"retention":null,"retentionDays":null}}`, rest(`"engineTablesConfig":{"region":"west"},`), nil},
		"an object as whole":     {`{"engineTablesConfig":null}`, rest(""), nil},
		"endpoints":              {`{"endpoints":{"events":"https://a.example.org/api/updates"}}`, rest(`"endpoints":{"events":"https://a.example.org/api/updates"},` + tablesAsTheyWere), nil},
		"a field of an engine":   {`{"version":"2.0","Health":{},"ring":"x"}`, "", []string{"Health", "version"}},
		"fields of the registry": {`{"instanceId":"i2","registryVersion":9,"instanceLock":{}}`, "", []string{"instanceId", "instanceLock", "registryVersion"}},
		"other letters":          {`{"Ring":"x"}`, "", []string{"Ring"}},
		"no name":                {`{"":1}`, "", []string{""}},
		"a long name":            {`{"` + strings.Repeat("n", 129) + `":1}`, "", []string{strings.Repeat("n", 129)}},
		"no ring":                {`{"ring":"a b"}`, "", []string{"ring"}},
		"ring of another type":   {`{"ring":3}`, "", []string{"ring"}},
		"http":                   {`{"endpoints":{"events":"http://a.example.org/"}}`, "", []string{"endpoints"}},
		"an address with a user": {`{"endpoints":{"events":"https://u:p@a.example.org/"}}`, "", []string{"endpoints"}},
		"no tenant":              {`{"tenantId":""}`, "", []string{"tenantId"}},
		"tables":                 {`{"engineTablesConfig":{"dlqTableName":"a-b","retentionDays":3651}}`, "", []string{"engineTablesConfig"}},
		"one table":              {`{"engineTablesConfig":{"dlqTableName":"rows","historyTableName":"Rows"}}`, "", []string{"engineTablesConfig"}},
		"a day":                  {`{"engineTablesConfig":{"retention":{"hmac":0}}}`, "", []string{"engineTablesConfig"}},
		"no day":                 {`{"engineTablesConfig":{"retentionDays":0}}`, "", []string{"engineTablesConfig"}},
		"no day, otherwise":      {`{"engineTablesConfig":{"retentionDays":-0.0e1}}`, "", []string{"engineTablesConfig"}},
		"a misspelt member":      {`{"engineTablesConfig":{"retentionDay":5}}`, "", []string{"engineTablesConfig"}},
		"a member's letter case": {`{"engineTablesConfig":{"RetentionDays":5}}`, "", []string{"engineTablesConfig"}},
		"another one's member":   {`{"engineTablesConfig":{"region":"east"}}`, rest(strings.Replace(tablesAsTheyWere, "west", "east", 1)), nil},
		"an account":             {`{"engineTablesConfig":{"storageAccountName":"A"}}`, "", []string{"engineTablesConfig"}},
		"text for a number":      {`{"engineTablesConfig":{"retentionDays":"7"}}`, "", []string{"engineTablesConfig"}},
		"no object":              {`[]`, "", []string{""}},
		"null":                   {`null`, "", []string{""}},
	} {
		var i registry.Instance
		if err := json.Unmarshal([]byte(document), &i); err != nil {
			t.Fatal(err)
		}
		err := i.Patch([]byte(c.patch))
		if diff := cmp.Diff(c.wrong, wrongFields(err)); diff != "" || err != nil && !errors.Is(err, registry.ErrInvalid) {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
		if c.want == "" {
			c.want = rest(tablesAsTheyWere)
		}
		got, err := json.Marshal(i)
		if diff := cmp.Diff(c.want, string(got)); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

// wrongFields returns the fields that an error names.
func wrongFields(err error) (fields []string) {
	all := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		all = joined.Unwrap()
	}
	for _, err := range all {
		if wrong, ok := errors.AsType[*registry.FieldError](err); ok {
			fields = append(fields, wrong.Field)
		}
	}
	return fields
}

// A merge patch that is applied twice has the same result as once, and never changes forbidden fields.
func FuzzPatch(f *testing.F) {
	f.Add(`{"a":{"b":null,"c":[1,null]},"ring":"x"}`)
	f.Add(`{"engineTablesConfig":{"retention":{"x":1}},"x":1e400}`)
	f.Add(`{"instanceLock":null}`)
	f.Fuzz(func(t *testing.T, patch string) {
		const document = `{"instanceId":"i1","a":{"b":1,"d":"x"},"version":"1.0","instanceLock":{"lockJobId":"j","lockDurationSeconds":60,"lockUntilUtc":"2026-11-21T13:00:00Z"},"registryVersion":3}`
		var i registry.Instance
		if err := json.Unmarshal([]byte(document), &i); err != nil {
			t.Fatal(err)
		}
		before := i.Clone()
		err := i.Patch([]byte(patch))
		once, marshalErr := json.Marshal(i)
		var version string
		if _, bad := i.Field("version", &version); bad != nil || version != "1.0" || i.InstanceID != before.InstanceID || i.Lock != before.Lock || i.Version != before.Version || marshalErr != nil {
			t.Fatalf("%q makes %s, %v", patch, once, marshalErr)
		}
		if err != nil {
			return
		}
		if err := i.Patch([]byte(patch)); err != nil {
			t.Fatalf("%q, again: %v", patch, err)
		}
		if twice, err := json.Marshal(i); err != nil || string(twice) != string(once) {
			t.Errorf("%q makes %s, then %s, %v", patch, once, twice, err)
		}
	})
}
