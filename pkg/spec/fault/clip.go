package fault

import (
	"strconv"
	"strings"
)

// shown bounds how much of a submitted value a message repeats, in bytes.
const shown = 80

// Clip shortens a submitted value for a message.
func Clip(text string) string { return ClipTo(text, shown) }

// ClipTo shortens a text to a number of bytes, and marks that. It cuts between characters.
func ClipTo(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}

// Quote shows a submitted value in a message: clipped, in quotes.
func Quote(text string) string { return strconv.Quote(Clip(text)) }
