package queues

import (
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/vibedata/roundhouse/internal/storage"
)

// The exported names of this file are for implementations of Store, such as Memory and the adapter in package azure.
// Implementations that check requests with them accept and reject the same ones.

// The ids and receipts of the service are far shorter than these limits.
const (
	maxID      = 256
	maxReceipt = 1024
)

// CheckQueue checks the name of a queue by the service's rules: 3 to 63 of a-z, 0-9 and single hyphens between them. It
// is for implementations of Store.
func CheckQueue(name string) error { return storage.CheckName("queue", name) }

// Encode returns the text that Send stores for a body of 1 to MaxBody bytes. It is for implementations of Store.
func Encode(body []byte) (string, error) {
	switch {
	case len(body) == 0:
		return "", fmt.Errorf("%w: the body is empty", ErrInvalid)
	case len(body) > MaxBody:
		return "", fmt.Errorf("%w: the body has %d bytes of at most %d: store it elsewhere and send its place", ErrTooLarge, len(body), MaxBody)
	}
	return encode(body), nil
}

// CheckText rejects a text that is empty, larger than MaxText, or not allowed in an XML request. It is for
// implementations of Store.
func CheckText(text string) error {
	if text == "" {
		return fmt.Errorf("%w: the text is empty", ErrInvalid)
	}
	if len(text) > MaxText {
		return fmt.Errorf("%w: the text has %d bytes of at most %d", ErrTooLarge, len(text), MaxText)
	}
	for i, r := range text {
		_, size := utf8.DecodeRuneInString(text[i:])
		if r < 0x20 && r != '\t' && r != '\n' && r != '\r' || r == utf8.RuneError && size == 1 || r == 0xfffe || r == 0xffff {
			return fmt.Errorf("%w: the text holds %q at byte %d, which XML cannot carry: use Send", ErrInvalid, r, i)
		}
	}
	return nil
}

// CheckDelay checks the delay of a Send, or the visibility of a Renew. It is for implementations of Store.
func CheckDelay(d time.Duration) error {
	if d < 0 || d > MaxDelay {
		return fmt.Errorf("%w: delay %v: use 0 to %v", ErrInvalid, d, MaxDelay)
	}
	return nil
}

// CheckHidden checks the time for which a sender hides its own message. It is for implementations of Store.
func CheckHidden(d time.Duration) error {
	if d <= 0 || d > MaxDelay {
		return fmt.Errorf("%w: hidden for %v: use more than 0, to %v", ErrInvalid, d, MaxDelay)
	}
	return nil
}

// CheckReceive checks the arguments of a Receive. It is for implementations of Store.
func CheckReceive(limit int, visibility time.Duration) error {
	var errs []error
	if limit < 1 || limit > MaxReceive {
		errs = append(errs, fmt.Errorf("%w: limit %d: use 1 to %d", ErrInvalid, limit, MaxReceive))
	}
	if visibility <= 0 || visibility > MaxDelay {
		errs = append(errs, fmt.Errorf("%w: visibility %v: use more than 0, to %v", ErrInvalid, visibility, MaxDelay))
	}
	return errors.Join(errs...)
}

// CheckReceipt rejects a text that cannot be a message id (letters, digits and hyphens). An SDK may put it into the URL
// unescaped, where ".." would address another resource and "." all messages of the queue. It is for implementations of
// Store.
func CheckReceipt(id, popReceipt string) error {
	ok := id != "" && len(id) <= maxID && popReceipt != "" && len(popReceipt) <= maxReceipt
	for i := 0; ok && i < len(id); i++ {
		c := id[i]
		ok = 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || c == '-'
	}
	if !ok {
		return fmt.Errorf("%w: message id or pop receipt is not one of a received message", ErrInvalid)
	}
	return nil
}

// WholeSeconds rounds a delay or visibility up, so that no message becomes visible too early. It is for implementations
// of Store.
func WholeSeconds(d time.Duration) time.Duration {
	return (d + time.Second - 1).Truncate(time.Second)
}
