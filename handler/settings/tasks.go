package settings

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

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

// Tasks say who may do what with human tasks, and how long they are kept.
type Tasks struct {
	HomeTenant, AdminRole string
	Retention             time.Duration
	// ReviewRoles are who is asked about dead letters.
	ReviewRoles []string
}

// tasksFrom reads ROUNDHOUSE_HOME_TENANT, ROUNDHOUSE_ADMIN_ROLE, ROUNDHOUSE_TASK_RETENTION and ROUNDHOUSE_REVIEW_ROLES.
func tasksFrom(r *Reader) (Tasks, error) {
	s := Tasks{HomeTenant: r.Text("ROUNDHOUSE_HOME_TENANT"), AdminRole: r.Text("ROUNDHOUSE_ADMIN_ROLE")}
	var errs [4]error
	if _, err := uuid.Parse(cmp.Or(s.HomeTenant, uuid.Nil.String())); err != nil {
		errs[0] = fmt.Errorf("ROUNDHOUSE_HOME_TENANT is %.64q: set the id of a Microsoft Entra tenant", s.HomeTenant)
	}
	if s.AdminRole != "" && s.HomeTenant == "" {
		errs[1] = errors.New("ROUNDHOUSE_ADMIN_ROLE is set, but ROUNDHOUSE_HOME_TENANT is not: the role is given to people of that tenant only")
	}
	s.Retention, errs[2] = keepSetting(r, taskSetting, defaultTaskRetention, time.Hour)
	s.ReviewRoles, errs[3] = reviewRoles(r)
	return s, errors.Join(errs[:]...)
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
