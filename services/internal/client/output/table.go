package output

import (
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// Table is a header and rows of as many cells.
type Table struct {
	Header []string
	Rows   [][]string
	// Long names the columns that are cut where lines would be longer than a terminal.
	Long []string
	// NoHeader leaves the header out.
	NoHeader bool
}

// longLeast is how much of a long column a terminal shows at least; columnGap is between
// columns.
const (
	longLeast = 16
	columnGap = 3
)

// Within returns a writer to which tables write lines of at most this length, where they
// can. Other writers get all of a table.
func Within(w io.Writer, columns int) io.Writer { return narrow{w, columns} }

type narrow struct {
	io.Writer
	columns int
}

// Columns is how long a line is.
func (n narrow) Columns() int { return n.columns }

// columnsOf is how long lines may be; 0 for any length.
func columnsOf(w io.Writer) int {
	if bounded, is := w.(interface{ Columns() int }); is {
		return bounded.Columns()
	}
	return 0
}

// Write aligns the columns; each line starts with indent.
func (t Table) Write(w io.Writer, indent string) error {
	most := columnsOf(w)
	if most > 0 {
		most = max(1, most-utf8.RuneCountInString(indent))
	}
	return t.WriteRows(w, indent, t.Widths(most))
}

// Widths are those of the columns when lines have at most this length; 0 is without
// bound.
func (t Table) Widths(most int) []int {
	widths, sum := make([]int, len(t.Header)), columnGap*(len(t.Header)-1)
	for column := range widths {
		if !t.NoHeader {
			widths[column] = utf8.RuneCountInString(t.Header[column])
		}
		for _, row := range t.Rows {
			if column < len(row)-1 || column == len(t.Header)-1 && column < len(row) { // the last of a short row may go on
				widths[column] = max(widths[column], utf8.RuneCountInString(Cell(row[column])))
			}
		}
		sum += widths[column]
	}
	for most > 0 && sum > most {
		longest := -1
		for column, name := range t.Header {
			if slices.Contains(t.Long, name) && widths[column] > longLeast && (longest < 0 || widths[column] > widths[longest]) {
				longest = column
			}
		}
		if longest < 0 {
			break
		}
		widths[longest]--
		sum--
	}
	return widths
}

// WriteRows writes the table with columns as wide as given. What is longer is cut in a long
// column, and moves the rest of its line otherwise.
func (t Table) WriteRows(w io.Writer, indent string, widths []int) error {
	rows := t.Rows
	if !t.NoHeader {
		rows = append([][]string{t.Header}, rows...)
	}
	var text strings.Builder
	for _, row := range rows {
		line := indent
		for column, cell := range row {
			cell = Cell(cell)
			if slices.Contains(t.Long, t.Header[column]) && (column < len(row)-1 || columnsOf(w) > 0) {
				cell = Short(cell, widths[column])
			}
			line += cell
			if column < len(row)-1 {
				line += strings.Repeat(" ", max(0, widths[column]-utf8.RuneCountInString(cell))+columnGap)
			}
		}
		text.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// Drop leaves a column out.
func (t *Table) Drop(name string) {
	column := slices.Index(t.Header, name)
	t.Header = slices.Delete(t.Header, column, column+1)
	for i := range t.Rows {
		t.Rows[i] = slices.Delete(t.Rows[i], column, column+1)
	}
}
