package handler

import (
	"context"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/review"
	"github.com/vibedata/roundhouse/orchestrator"
)

// wireReviews creates reviews of new dead letters, if reviewers are set.
func wireReviews(c *orchestrator.Config, roles []string, letters *engine.DeadLetters, retrier *engine.Retrier, runtime func() *orchestrator.Runtime) error {
	reviews, err := review.New(review.Config{Letters: letters, Retrier: retrier, Roles: roles})
	if err != nil {
		return err
	}
	// Reviews from before the setting was removed still have to end.
	c.Orchestrators, c.Activities = append(c.Orchestrators, reviews.Orchestrator), append(c.Activities, reviews.Activities()...)
	if len(roles) > 0 {
		letters.OnAdd(func(ctx context.Context, d engine.DeadLetter) error {
			if d.Engine == engine.SignalEngine && d.DetectedReason == engine.ReasonStalled {
				return nil // it may be a review itself, whose own review would stall as well
			}
			return reviews.Begin(ctx, runtime(), d)
		})
	}
	return nil
}
