package output

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Cell shows a text in a table or a line: what would begin another line or cell,
// move the cursor of a terminal or change the direction of writing is written out,
// as in a text of Go. Names and reasons come from people who may wish to fake rows.
func Cell(text string) string { return escaped(text, false, pair) }

// escaped writes out what a terminal would obey; lines keeps ends of lines and tabs,
// and wide writes out characters beyond sixteen bits.
func escaped(text string, lines bool, wide func(rune) string) string {
	var out strings.Builder
	for i, r := range text {
		_, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case lines && (r == '\n' || r == '\t'), unicode.IsPrint(r):
			out.WriteString(text[i : i+size])
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&out, "\\x%02x", text[i])
		case r > 0xffff:
			out.WriteString(wide(r))
		default:
			fmt.Fprintf(&out, "\\u%04x", r)
		}
	}
	return out.String()
}

// pair writes a character as JSON does.
func pair(r rune) string {
	high, low := utf16.EncodeRune(r)
	return fmt.Sprintf("\\u%04x\\u%04x", high, low)
}

// single writes a character as YAML does.
func single(r rune) string { return fmt.Sprintf("\\U%08x", r) }

// Safe returns a writer that lets through what a terminal shows, and writes out
// what it would obey. Ends of lines and tabs stay. In JSON and YAML the same values
// are meant afterwards.
// Tables write lines of at most this length, 0 for any length.
func Safe(w io.Writer, columns int) *Terminal { return &Terminal{to: w, columns: columns} }

// Terminal is a writer that Safe has made.
type Terminal struct {
	to   io.Writer
	rest []byte // the beginning of a character of which the end has not come

	columns int
}

// Columns is how long a line is; 0 for any length.
func (s *Terminal) Columns() int { return s.columns }

// Unwrap returns the writer behind, for what the program itself sends to the terminal.
func (s *Terminal) Unwrap() io.Writer { return s.to }

// Write implements io.Writer.
func (s *Terminal) Write(p []byte) (int, error) {
	text := append(s.rest, p...)
	whole := len(text)
	for back := 1; back < utf8.UTFMax && back <= len(text); back++ {
		if start := text[len(text)-back:]; utf8.RuneStart(start[0]) {
			if !utf8.FullRune(start) {
				whole -= back
			}
			break
		}
	}
	s.rest = append([]byte(nil), text[whole:]...)
	if _, err := io.WriteString(s.to, escaped(string(text[:whole]), true, pair)); err != nil {
		return 0, err
	}
	return len(p), nil
}
