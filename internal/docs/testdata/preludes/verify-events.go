package block

import (
	"context"
	"errors"
	"net/http"

	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/outbox/receiver"
)

// The block stands here.
