package poller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/internal/storage"
)

// DefaultContainer is the container of the state documents (checkpoint document, section 3).
const DefaultContainer = "db-state"

const blobSuffix = ".json"

// BlobStore keeps state documents as blobs, {poller}.json. Blobs is required.
type BlobStore struct {
	Blobs blobs.Store
	// Container defaults to DefaultContainer.
	Container string
}

var _ Store = BlobStore{}

func (s BlobStore) container() string { return cmp.Or(s.Container, DefaultContainer) }

// Create creates the container if it is missing.
func (s BlobStore) Create(ctx context.Context) error {
	if err := s.Blobs.CreateContainer(ctx, s.container()); err != nil {
		return fmt.Errorf("create the container of poller states: %w", err)
	}
	return nil
}

// Load reads a document.
func (s BlobStore) Load(ctx context.Context, poller string) (State, error) {
	if err := CheckName(poller); err != nil {
		return State{}, err
	}
	var response blobs.Response
	data, err := s.Blobs.Get(blobs.WithCaptureResponse(ctx, &response), s.container(), poller+blobSuffix)
	return stateFromLoad(poller, data, err, &response)
}

// Swap replaces a version of a document.
func (s BlobStore) Swap(ctx context.Context, poller string, data []byte, etag string) (State, error) {
	if err := CheckName(poller); err != nil {
		return State{}, err
	}
	var response blobs.Response
	err := s.Blobs.PutIf(blobs.WithCaptureResponse(ctx, &response), s.container(), poller+blobSuffix, data, etag)
	return stateFromSwap(poller, data, err, &response)
}

// List returns the names of the pollers.
func (s BlobStore) List(ctx context.Context) ([]string, error) {
	var out []string
	for name, err := range blobs.All(ctx, s.Blobs, s.container(), "") {
		switch {
		case errors.Is(err, blobs.ErrNotFound):
			return nil, nil
		case err != nil:
			return nil, fmt.Errorf("list the states of pollers: %w", err)
		}
		if poller, ok := strings.CutSuffix(name, blobSuffix); ok && CheckName(poller) == nil {
			out = append(out, poller)
		}
	}
	slices.Sort(out) // the suffix makes the order of the blobs differ, because a hyphen sorts before its dot
	return out, nil
}

// stateFromLoad returns the result of a Load.
func stateFromLoad(poller string, data []byte, err error, response *blobs.Response) (State, error) {
	state := State{Data: data, ETag: response.ETag(), Time: response.Date()}
	switch {
	case errors.Is(err, storage.ErrNotFound):
		state.ETag, err = "", ErrNotFound
	case err != nil:
	case state.ETag == "" || state.Time.IsZero():
		err = errors.New("the service answered without a version or a time")
	default:
		return state, nil
	}
	return state, fmt.Errorf("load the state of poller %s: %w", poller, err)
}

// stateFromSwap returns the result of a Swap.
func stateFromSwap(poller string, data []byte, err error, response *blobs.Response) (State, error) {
	state := State{Data: data, ETag: response.ETag(), Time: response.Date()}
	switch {
	case err == nil && state.ETag != "" && !state.Time.IsZero():
		return state, nil
	case err == nil: // the write was applied, but the next one needs the version
		err = fmt.Errorf("%w: the service answered without a version or a time", ErrOutcomeUnknown)
	case errors.Is(err, storage.ErrPrecondition), errors.Is(err, storage.ErrExists):
		err = fmt.Errorf("%w: %w", ErrChanged, err)
	case errors.Is(err, storage.ErrOutcomeUnknown), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
	return State{Time: state.Time}, fmt.Errorf("write the state of poller %s: %w", poller, err)
}

// transient reports whether a call was not applied and may be repeated.
func transient(err error) bool { return errors.Is(err, storage.ErrThrottled) }
