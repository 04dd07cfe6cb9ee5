package develop

import (
	"slices"
	"testing"
)

// The named account is used, regardless of local.settings.json.
func TestStorageOfVerify(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		connection  string
		environment []string
		want        []string
	}{
		{"UseDevelopmentStorage=true", []string{"AzureWebJobsStorage__accountName=a"}, []string{"AzureWebJobsStorage=UseDevelopmentStorage=true"}},
		{"", []string{"AzureWebJobsStorage__accountName=a"}, []string{"AzureWebJobsStorage="}},
		{"settings", []string{"AzureWebJobsStorage__accountName=a"}, []string{"AzureWebJobsStorage="}},
		{"", []string{"AzureWebJobsStorage=x", "AzureWebJobsStorage__accountName=a"}, nil},
		{"", nil, nil},
	} {
		if got := storageOf(tt.connection, tt.environment); !slices.Equal(got, tt.want) {
			t.Errorf("%+v: %q", tt, got)
		}
	}
}
