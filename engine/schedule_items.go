package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"
)

// MaxItemLength bounds the name of a schedule target, in bytes.
const MaxItemLength = MaxInstanceIDLength

// Item is a schedule target: a key, a certificate, an instance. Its Name is unique in the schedule.
type Item struct {
	Name string
	// Message returns the message of an occurrence, which depends only on the target and on slot, the time of the
	// occurrence in UTC. The zero time is a manual run without a slot; its message gets a correlation id of its own.
	Message func(slot time.Time) (Message, error)
}

// suffix names the target after its schedule, in errors.
func (i Item) suffix() string {
	if i.Name == "" {
		return ""
	}
	return fmt.Sprintf(", item %.80q,", i.Name)
}

// ItemPage is a page of targets.
type ItemPage struct {
	Items []Item
	// Next continues the list, "" on the last page.
	Next string
}

// Items are the targets of a schedule: FixedItems or PagedItems makes them.
type Items struct {
	fixed []Item
	page  func(ctx context.Context, next string) (ItemPage, error)
}

// FixedItems returns targets that are known at start.
func FixedItems(items ...Item) *Items { return &Items{fixed: items} }

// PagedItems returns targets from storage, read page by page; next is "" for the first page.
func PagedItems(page func(ctx context.Context, next string) (ItemPage, error)) *Items {
	return &Items{page: page}
}

// Fixed returns the targets that are known at start; ok is false for paged ones.
func (i *Items) Fixed() (items []Item, ok bool) {
	if i == nil || i.page != nil {
		return nil, false
	}
	return i.fixed, true
}

// All iterates over the targets. It stops at the first error, which it yields with a zero Item.
func (i *Items) All(ctx context.Context) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		if i.page == nil {
			i.yield(i.fixed, yield)
			return
		}
		for next, more := "", true; more; more = next != "" {
			page, err := i.page(ctx, next)
			if err != nil {
				yield(Item{}, err)
				return
			}
			if !i.yield(page.Items, yield) {
				return
			}
			next = page.Next
		}
	}
}

// yield passes targets on; an invalid target is an error.
func (*Items) yield(items []Item, yield func(Item, error) bool) bool {
	for _, item := range items {
		if err := item.validate(); err != nil {
			yield(Item{}, err)
			return false
		}
		if !yield(item, nil) {
			return false
		}
	}
	return true
}

func (i Item) validate() error {
	if i.Name == "" || i.Message == nil {
		return errors.New("an item needs a name and a message")
	}
	return checkLength("the name of an item", i.Name, MaxItemLength)
}

// validate checks the targets that are known at start.
func (i *Items) validate() error {
	fixed, ok := i.Fixed()
	if !ok {
		return nil
	}
	var errs []error
	known := map[string]bool{}
	for _, item := range fixed {
		if errs = append(errs, item.validate()); known[item.Name] {
			errs = append(errs, fmt.Errorf("the item %.80q is there twice", item.Name))
		}
		known[item.Name] = true
	}
	return errors.Join(errs...)
}
