package fault

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable is a text for people that may have parts that a tenant wrote, such as
// the name of a field: what would move the cursor of a terminal, begin a line or change
// the direction of writing is written out, as in a string of Go.
func Printable(text string) string {
	if utf8.ValidString(text) && strings.IndexFunc(text, hidden) < 0 {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			b.WriteString(`\x` + strconv.FormatUint(uint64(text[0])|0x100, 16)[1:])
		case hidden(r):
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		default:
			b.WriteRune(r)
		}
		text = text[size:]
	}
	return b.String()
}

func hidden(r rune) bool { return !unicode.IsPrint(r) }
