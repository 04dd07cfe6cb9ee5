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

// checkText checks the rules that names and prefixes share.
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

// checkSegments checks the complete segments of a name.
func checkSegments(name string, segments []string) error {
	for _, s := range segments {
		if s == "" || strings.HasSuffix(s, ".") {
			return fmt.Errorf("%w: blob name %.64q has an empty segment or one that ends with a dot", ErrInvalid, name)
		}
	}
	return nil
}
