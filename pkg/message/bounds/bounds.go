// Package bounds refuses JSON from outside for its size, its depth or the number of its values,
// before it is decoded: decoded, an empty object of two bytes may take hundreds.
//
// It is not for whether the text is JSON, nor for what its values mean.
package bounds

import (
	"bytes"
	"fmt"
)

// JSON bounds a text. A bound of zero is none.
type JSON struct {
	// Bytes of the text.
	Bytes int
	// Depth of lists and objects in each other.
	Depth int
	// Values counts texts, numbers, lists and objects, an empty list or object twice.
	Values int
	// Storable refuses the character U+0000, which no database stores.
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
	depth, values := 0, 1
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			end, hasNUL := afterText(text, i)
			if hasNUL && b.Storable {
				return fmt.Errorf("has the character U+0000 at byte %d; want text that a database stores", i)
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

// escapedNUL is how JSON writes the character U+0000.
const escapedNUL = `\u0000`

// afterText returns the place after a text of JSON that begins at a quote, and whether it has the
// character U+0000.
func afterText(text []byte, quote int) (end int, hasNUL bool) {
	for i := quote + 1; i < len(text); i++ {
		switch text[i] {
		case '"':
			return i + 1, hasNUL
		case '\\':
			hasNUL = hasNUL || bytes.HasPrefix(text[i:], []byte(escapedNUL))
			i++ // the escaped character is no quote
		}
	}
	return len(text), hasNUL
}
