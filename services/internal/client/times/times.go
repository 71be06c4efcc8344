// Package times reads times as people write them: a time, a date, or how long ago it was.
package times

import (
	"strconv"
	"strings"
	"time"
)

// mostDaysAgo bounds a time that is given in days.
const mostDaysAgo = 100_000

// Want is what Parse takes, for errors.
const Want = "want a time such as 2026-01-02T15:04:05Z, a date, or how long ago, such as 24h or 7d"

// Parse reads a time as Since does, a date of UTC, or a number of days ago.
func Parse(text string, now time.Time) (time.Time, error) {
	if days, is := strings.CutSuffix(text, "d"); is {
		if n, err := strconv.ParseUint(days, 10, 32); err == nil && n <= mostDaysAgo {
			return now.AddDate(0, 0, -int(n)), nil
		}
	}
	if date, err := time.Parse(time.DateOnly, text); err == nil {
		return date, nil
	}
	return Since(text, now)
}

// Since reads a time, or how long before now it is; empty is the zero time.
func Since(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	return time.Parse(time.RFC3339, text)
}
