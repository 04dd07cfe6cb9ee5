package settings

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/engine/review"
	"github.com/vibedata/roundhouse/orchestrator/tasks"
)

const (
	taskSetting = "ROUNDHOUSE_TASK_RETENTION"
	// reviewSetting says who is asked about dead letters.
	reviewSetting = "ROUNDHOUSE_REVIEW_ROLES"
	// defaultTaskRetention is how long human tasks are kept once they have ended.
	defaultTaskRetention = 90 * 24 * time.Hour
)

// Tasks say for how long human tasks are kept, and who is asked what.
type Tasks struct {
	Retention time.Duration
	// ReviewRoles are who is asked about dead letters.
	ReviewRoles []string
}

// tasksFrom reads ROUNDHOUSE_TASK_RETENTION and ROUNDHOUSE_REVIEW_ROLES.
func tasksFrom(r *Reader) (Tasks, error) {
	var s Tasks
	var keepErr, rolesErr error
	s.Retention, keepErr = keepSetting(r, taskSetting, defaultTaskRetention, time.Hour)
	s.ReviewRoles, rolesErr = reviewRoles(r)
	return s, errors.Join(keepErr, rolesErr)
}

// reviewRoles reads ROUNDHOUSE_REVIEW_ROLES, roles with commas between them; nil means that nobody is asked.
func reviewRoles(r *Reader) ([]string, error) {
	text := r.Text(reviewSetting)
	if text == "" {
		return nil, nil
	}
	roles := strings.Split(text, ",")
	for i := range roles {
		roles[i] = strings.TrimSpace(roles[i])
	}
	if err := (tasks.Task{Name: review.Task, Roles: roles}).Validate(); err != nil {
		return nil, fmt.Errorf("%s is %.200q: set the names of app roles, with commas between them: %w", reviewSetting, text, err)
	}
	return roles, nil
}
