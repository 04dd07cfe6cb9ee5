package settings

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTaskSettings(t *testing.T) {
	t.Parallel()
	const home = "7d6a8a3e-0a0c-4c8e-9f0b-1d2c3b4a5e6f"
	for _, c := range []struct {
		home, admin, retention, review string
		want                           Tasks
		complaint                      string
	}{
		{want: Tasks{Retention: 90 * day}},
		{home: home, admin: "Keeper", retention: "48h", want: Tasks{HomeTenant: home, AdminRole: "Keeper", Retention: 48 * time.Hour}},
		{home: "contoso.com", complaint: "ROUNDHOUSE_HOME_TENANT"},
		{admin: "Keeper", complaint: "ROUNDHOUSE_ADMIN_ROLE"},
		{retention: "90d", complaint: taskSetting},
		{review: "operator, keeper", want: Tasks{Retention: 90 * day, ReviewRoles: []string{"operator", "keeper"}}},
		{review: "operator,,keeper", complaint: reviewSetting},
	} {
		got, err := tasksFrom(NewReader(emulator.With("ROUNDHOUSE_HOME_TENANT", c.home).With("ROUNDHOUSE_ADMIN_ROLE", c.admin).With(taskSetting, c.retention).With(reviewSetting, c.review).Lookup))
		if c.complaint == "" && (err != nil || !cmp.Equal(got, c.want)) || c.complaint != "" && (err == nil || !strings.Contains(err.Error(), c.complaint)) {
			t.Errorf("%+v: %+v, %v", c, got, err)
		}
	}
}
