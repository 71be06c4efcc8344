// Package bounds refuses JSON from outside for its size, its depth or the number of its values,
// before it is decoded: decoded, an empty object of two bytes may take hundreds.
//
// It is not for whether the text is JSON, nor for what its values mean.
package bounds

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// JSON bounds a text. A bound of zero is none.
type JSON struct {
	// Bytes of the text.
	Bytes int
	// Depth of lists and objects in each other.
	Depth int
	// Values counts texts, numbers, lists and objects, an empty list or object twice.
	Values int
	// Storable refuses what Go reads and Postgres does not store: the character U+0000, half of
	// a surrogate pair, and bytes that are no UTF-8.
	Storable bool
}

// Check returns the first bound that a text exceeds. It reads each byte once and allocates nothing,
// also of a text that is no JSON.
func (b JSON) Check(text []byte) error {
	if b.Bytes > 0 && len(text) > b.Bytes {
		return fmt.Errorf("has %d bytes; want at most %d", len(text), b.Bytes)
	}
	if b.Depth == 0 && b.Values == 0 && !b.Storable {
		return nil
	}
	if b.Storable && !utf8.Valid(text) {
		return errors.New("has bytes that are no UTF-8")
	}
	depth, values := 0, 1
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			end, refused := afterText(text, i)
			if refused != "" && b.Storable {
				return fmt.Errorf("has %s in the text at byte %d; want what a database stores", refused, i)
			}
			i = end - 1
		case '{', '[':
			depth++
			values++
		case '}', ']':
			depth--
		case ',':
			values++
		}
		if b.Depth > 0 && depth > b.Depth {
			return fmt.Errorf("is nested more than %d deep", b.Depth)
		}
		if b.Values > 0 && values > b.Values {
			return fmt.Errorf("has more than %d values", b.Values)
		}
	}
	return nil
}

// afterText returns the place after a text of JSON that begins at a quote, and what is escaped in it
// that Postgres does not store.
func afterText(text []byte, quote int) (end int, refused string) {
	for i := quote + 1; i < len(text); i++ {
		switch text[i] {
		case '"':
			return i + 1, refused
		case '\\':
			unit, is := escaped(text[i:])
			low, pair := rune(0), false
			if is && utf16.IsSurrogate(unit) {
				if low, pair = escaped(text[min(i+escapeLength, len(text)):]); pair {
					pair = utf16.DecodeRune(unit, low) != utf8.RuneError
				}
			}
			switch {
			case is && unit == 0:
				refused = "the character U+0000"
			case pair:
				i += 2*escapeLength - 1
				continue
			case is && utf16.IsSurrogate(unit):
				refused = "half of a surrogate pair"
			}
			i++ // the escaped character is no quote
		}
	}
	return len(text), refused
}

// escapeLength is that of \uXXXX.
const escapeLength = 6

// escaped returns the UTF-16 unit of an escape \uXXXX at the beginning of a text, if there is one.
func escaped(text []byte) (unit rune, is bool) {
	if len(text) < escapeLength || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text[2:escapeLength]), 16, 16)
	return rune(n), err == nil
}
