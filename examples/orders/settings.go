package main

import (
	"errors"
	"strconv"
	"time"

	"github.com/vibedata/roundhouse/examples/orders/orders"
	"github.com/vibedata/roundhouse/handler/settings"
)

// terms reads the settings of the app. This file shows how: a read never fails by itself, the reader collects missing
// and invalid settings, and the program reports all of them together when it starts.
func terms(r *settings.Reader) orders.Terms {
	t := orders.Terms{
		Approvers:   r.List("ORDERS_APPROVERS"),
		ApprovalFor: r.Duration("ORDERS_APPROVAL_TIME", 24*time.Hour, time.Minute),
		PaymentFor:  r.Duration("ORDERS_PAYMENT_TIME", 7*24*time.Hour, time.Minute),
		Grace:       r.Duration("ORDERS_GRACE", 30*time.Minute, 0),
		Limit:       100_000,
	}
	if len(t.Approvers) == 0 {
		t.Approvers = []string{"sales"}
	}
	if text := r.Text("ORDERS_APPROVAL_LIMIT"); text != "" {
		cents, err := strconv.Atoi(text)
		if err != nil || cents < 0 {
			r.Reject("ORDERS_APPROVAL_LIMIT", errors.New("set a number of cents, 0 or more"))
		}
		t.Limit = cents
	}
	return t
}
