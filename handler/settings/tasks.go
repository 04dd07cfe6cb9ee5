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
	// reviewSetting lists the roles of reviewers of dead letters.
	reviewSetting = "ROUNDHOUSE_REVIEW_ROLES"
	// defaultTaskRetention is the default retention of ended human tasks.
	defaultTaskRetention = 90 * 24 * time.Hour
)

// Tasks holds the settings of human tasks.
type Tasks struct {
	Retention time.Duration
	// ReviewRoles are the roles of reviewers of dead letters.
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

// reviewRoles reads ROUNDHOUSE_REVIEW_ROLES, comma-separated roles; nil means no reviews.
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
