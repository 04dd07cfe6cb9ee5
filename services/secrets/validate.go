package secrets

import (
	"fmt"
	"unicode/utf8"
)

// checkName refuses an invalid name before it becomes part of a URL or a key.
func checkName(name string) error {
	if !ValidName(name) {
		return fmt.Errorf("%w: secret name must be 1 to %d letters, digits and dashes; make it with Name", ErrInvalid, MaxName)
	}
	return nil
}

// checkVersion does the same for a name and a version.
func checkVersion(name, version string) error {
	if err := checkName(name); err != nil {
		return err
	}
	if !ValidVersion(version) {
		return fmt.Errorf("%w: version must be 32 lower-case hex digits", ErrInvalid)
	}
	return nil
}

// checkAdd checks the arguments of Add against the limits of Key Vault.
func checkAdd(name string, value []byte, tags map[string]string) error {
	if err := checkName(name); err != nil {
		return err
	}
	if len(value) == 0 || len(value) > MaxValue {
		return fmt.Errorf("%w: value has %d bytes, allowed are 1 to %d", ErrInvalid, len(value), MaxValue)
	}
	if len(tags) > MaxTags {
		return fmt.Errorf("%w: %d tags, allowed are %d", ErrInvalid, len(tags), MaxTags)
	}
	for tag, text := range tags {
		if tag == "" || len(tag) > MaxTag || len(text) > MaxTag || !utf8.ValidString(tag) || !utf8.ValidString(text) {
			return fmt.Errorf("%w: a tag's name must have 1 to %d bytes of UTF-8 and its value at most %d", ErrInvalid, MaxTag, MaxTag)
		}
	}
	return nil
}
