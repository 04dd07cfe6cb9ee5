package blobs

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	maxNameUnits = 1024
	maxSegments  = 254
)

// checkName refuses names that the service does not take, and those that a URL on the way would change.
func checkName(name string) error {
	if err := checkText(name); err != nil {
		return err
	}
	return checkSegments(name, strings.Split(name, "/"))
}

// checkPrefix refuses what no name that checkName takes begins with. A name goes on within the last segment, so that
// one may be empty or end with a dot.
func checkPrefix(prefix string) error {
	if err := checkText(prefix); err != nil {
		return err
	}
	segments := strings.Split(prefix, "/")
	return checkSegments(prefix, segments[:len(segments)-1])
}

// checkText checks what a name and a prefix have in common.
func checkText(name string) error {
	if !utf8.ValidString(name) {
		return fmt.Errorf("%w: blob name %.64q is not UTF-8", ErrInvalid, name)
	}
	units := 0
	for _, r := range name {
		if r < 0x20 || r >= 0x7f && r <= 0x9f || r == '\\' || r == 0xfffe || r == 0xffff {
			return fmt.Errorf("%w: blob name %.64q holds %q", ErrInvalid, name, r)
		}
		if r > 0xffff {
			units++
		}
		units++
	}
	if units > maxNameUnits {
		return fmt.Errorf("%w: blob name %.64q has %d characters of at most %d", ErrTooLarge, name, units, maxNameUnits)
	}
	if segments := strings.Count(name, "/") + 1; segments > maxSegments {
		return fmt.Errorf("%w: blob name %.64q has %d segments of at most %d", ErrTooLarge, name, segments, maxSegments)
	}
	return nil
}

// checkSegments checks the segments of a name that are complete.
func checkSegments(name string, segments []string) error {
	for _, s := range segments {
		if s == "" || strings.HasSuffix(s, ".") {
			return fmt.Errorf("%w: blob name %.64q has an empty segment or one that ends with a dot", ErrInvalid, name)
		}
	}
	return nil
}

func checkSize(n int64) error {
	if n > MaxSize {
		return fmt.Errorf("%w: the blob has %d bytes of at most %d", ErrTooLarge, n, MaxSize)
	}
	return nil
}
