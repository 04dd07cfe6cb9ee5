package audit_test

import (
	"testing"

	"github.com/vibedata/roundhouse/internal/azurite/azuritetest"
)

var storage azuritetest.Shared

func TestMain(m *testing.M) { storage.Main(m) }
