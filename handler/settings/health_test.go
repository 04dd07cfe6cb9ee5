package settings

import (
	"strings"
	"testing"
	"time"
)

func TestHealthSettings(t *testing.T) {
	t.Parallel()
	h, err := healthFrom(NewReader(func(name string) (string, bool) {
		v, ok := map[string]string{"ROUNDHOUSE_HEALTH_OUTBOX_BACKLOG": " 5, 6 ", "ROUNDHOUSE_HEALTH_OUTBOX_AGE": "-1s,2h",
			"ROUNDHOUSE_HEALTH_OUTBOX_FAILURE_RATIO": "0.1,0.2", "ROUNDHOUSE_HEALTH_STALLED": "3,-1", "ROUNDHOUSE_HEALTH_OUTBOX_DEAD": "4,8", "ROUNDHOUSE_HEALTH_LIST_LAG": "3h,-1s", "ROUNDHOUSE_HEALTH_SCHEDULE_DELAY": "5m,1h", "ROUNDHOUSE_HEALTH_TIMEOUT": "7s"}[name]
		return v, ok
	}))
	if err != nil || h.Thresholds.Backlog.Degraded != 5 || h.Thresholds.Backlog.Unhealthy != 6 || h.Thresholds.OldestAge.Degraded != -time.Second ||
		h.Thresholds.FailureRatio.Unhealthy != 0.2 || h.Thresholds.Stalled.Degraded != 3 || h.Thresholds.Dead.Unhealthy != 8 || h.Thresholds.Stalled.Unhealthy != -1 ||
		h.Thresholds.ListLag.Degraded != 3*time.Hour || h.Thresholds.ScheduleDelay.Unhealthy != time.Hour || h.Timeout != 7*time.Second {
		t.Errorf("%+v, %v", h, err)
	}
	for name, value := range map[string]string{"OUTBOX_BACKLOG": "many", "OUTBOX_AGE": "5m", "OUTBOX_FAILURE_RATIO": "0.5,x", "STALLED": "1,x", "OUTBOX_DEAD": "few", "LIST_LAG": "1h", "SCHEDULE_DELAY": "1h", "TIMEOUT": "0s"} {
		_, err := healthFrom(NewReader(func(asked string) (string, bool) {
			v, ok := map[string]string{healthSetting + name: value}[asked]
			return v, ok
		}))
		if err == nil || !strings.Contains(err.Error(), healthSetting+name) || strings.Count(err.Error(), "\n") > 0 {
			t.Errorf("%s=%s: %v", name, value, err)
		}
	}
	if h, err := healthFrom(NewReader(func(string) (string, bool) { return "", false })); err != nil || h != (Health{}) {
		t.Errorf("unset: %+v, %v", h, err)
	}
}
