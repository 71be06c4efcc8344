package page

import "html/template"

// mostTable is the room for the rows of a table, or of what is like one, in bytes of HTML: less
// than the megabyte of a page, because a page has more than that.
const mostTable = 600 << 10

// perRow and perCell are about what the elements around texts take.
const perRow, perCell = 60, 12

// room is what is left for rows, in bytes of HTML.
type room int

// take takes the room for a row of texts, and reports whether there was as much.
func (r *room) take(texts ...string) bool {
	need := room(perRow)
	for _, text := range texts {
		need += room(perCell + len(template.HTMLEscapeString(text)))
	}
	if need > *r {
		return false
	}
	*r -= need
	return true
}
