package settings

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTaskSettings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		retention, review string
		want              Tasks
		complaint         string
	}{
		{want: Tasks{Retention: 90 * day}},
		{retention: "48h", want: Tasks{Retention: 48 * time.Hour}},
		{retention: "90d", complaint: taskSetting},
		{review: "operator, keeper", want: Tasks{Retention: 90 * day, ReviewRoles: []string{"operator", "keeper"}}},
		{review: "operator,,keeper", complaint: reviewSetting},
	} {
		got, err := tasksFrom(NewReader(emulator.With(taskSetting, c.retention).With(reviewSetting, c.review).Lookup))
		if c.complaint == "" && (err != nil || !cmp.Equal(got, c.want)) || c.complaint != "" && (err == nil || !strings.Contains(err.Error(), c.complaint)) {
			t.Errorf("%+v: %+v, %v", c, got, err)
		}
	}
}
