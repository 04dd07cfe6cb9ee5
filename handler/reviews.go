package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/review"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/tasks"
)

// reviewSetting says who is asked about dead letters.
const reviewSetting = "ROUNDHOUSE_REVIEW_ROLES"

// reviewRoles reads ROUNDHOUSE_REVIEW_ROLES, roles with commas between them; nil means that nobody is asked.
func reviewRoles(lookup lookupFunc) ([]string, error) {
	text := setting(lookup, reviewSetting)
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

// wireReviews has people asked about new dead letters, if there is somebody to ask.
func wireReviews(c *orchestrator.Config, roles []string, letters *engine.DeadLetters, retrier *engine.Retrier, runtime func() *orchestrator.Runtime) error {
	reviews, err := review.New(review.Config{Letters: letters, Retrier: retrier, Roles: roles})
	if err != nil {
		return err
	}
	// What was asked before the setting was taken away still has to come to its end.
	c.Orchestrators, c.Activities = append(c.Orchestrators, reviews.Orchestrator), append(c.Activities, reviews.Activities()...)
	if len(roles) > 0 {
		letters.OnAdd(func(ctx context.Context, d engine.DeadLetter) error {
			if d.Engine == engine.SignalEngine && d.DetectedReason == engine.ReasonStalled {
				return nil // it may be a review itself, and the review of that would stall as well
			}
			return reviews.Begin(ctx, runtime(), d)
		})
	}
	return nil
}
