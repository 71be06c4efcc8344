package page

import (
	"net/url"
	"strconv"
)

// Paging is where a page is in a list of rows.
type Paging struct {
	From, To, Of int
	// Before and Next are links to other pages; empty where there are none.
	Before, Next string
}

// cut returns the rows of a page that begins with row from; link ends with the mark of its query.
func cut[Row any](rows []Row, from int, link string) ([]Row, Paging) {
	from = max(0, min(from, len(rows)))
	to := min(from+PageRows, len(rows))
	p := Paging{From: from + 1, To: to, Of: len(rows)}
	at := func(row int) string { return link + url.Values{"from": {strconv.Itoa(row)}}.Encode() }
	if from > 0 {
		p.Before = at(max(0, from-PageRows))
	}
	if to < len(rows) {
		p.Next = at(to)
	}
	return rows[from:to], p
}

func number(n int) string { return strconv.Itoa(n) }
