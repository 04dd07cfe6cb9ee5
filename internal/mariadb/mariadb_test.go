package mariadb

import (
	"database/sql"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/internal/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A server answers, and leaves no files behind.
func TestStart(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	s, err := Start(t.Context())
	testenv.Started(t, err)
	db, err := sql.Open("mysql", s.DSN(""))
	if err != nil {
		t.Fatal(err)
	}
	var one int
	if err := db.QueryRowContext(t.Context(), "SELECT 1").Scan(&one); err != nil || one != 1 {
		t.Errorf("SELECT 1 = %d, %v", one, err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.home.Dir); !os.IsNotExist(err) {
		t.Errorf("the folder is still there: %v", err)
	}
}
