package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/orchestrator/tasks"
)

const (
	// taskTimer is the timer function that deletes human tasks which have ended, taskSetting says how long they are kept.
	taskTimer   = "task-retention-timer"
	taskSetting = "ROUNDHOUSE_TASK_RETENTION"
	// defaultTaskRetention is how long human tasks are kept once they have ended.
	defaultTaskRetention = 90 * 24 * time.Hour
)

// taskSettings say who may do what with human tasks, and how long they are kept.
type taskSettings struct {
	HomeTenant, AdminRole string
	Retention             time.Duration
	// ReviewRoles are who is asked about dead letters.
	ReviewRoles []string
}

// tasksFrom reads ROUNDHOUSE_HOME_TENANT, ROUNDHOUSE_ADMIN_ROLE, ROUNDHOUSE_TASK_RETENTION and ROUNDHOUSE_REVIEW_ROLES.
func tasksFrom(lookup lookupFunc) (taskSettings, error) {
	s := taskSettings{HomeTenant: setting(lookup, "ROUNDHOUSE_HOME_TENANT"), AdminRole: setting(lookup, "ROUNDHOUSE_ADMIN_ROLE")}
	var errs [4]error
	if _, err := uuid.Parse(cmp.Or(s.HomeTenant, uuid.Nil.String())); err != nil {
		errs[0] = fmt.Errorf("ROUNDHOUSE_HOME_TENANT is %.64q: set the id of a Microsoft Entra tenant", s.HomeTenant)
	}
	if s.AdminRole != "" && s.HomeTenant == "" {
		errs[1] = errors.New("ROUNDHOUSE_ADMIN_ROLE is set, but ROUNDHOUSE_HOME_TENANT is not: the role is given to people of that tenant only")
	}
	s.Retention, errs[2] = keepSetting(lookup, taskSetting, defaultTaskRetention, time.Hour)
	s.ReviewRoles, errs[3] = reviewRoles(lookup)
	return s, errors.Join(errs[:]...)
}

// taskRetention deletes the human tasks that ended long enough ago.
func taskRetention(desk *tasks.Desk, keep time.Duration) func(context.Context, engine.Retention, time.Time, int) (int, bool, error) {
	return func(ctx context.Context, _ engine.Retention, now time.Time, limit int) (int, bool, error) {
		return desk.Retention(ctx, now.Add(-keep), limit)
	}
}
