package output

import (
	"fmt"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/httpapi"
)

// reasonShown bounds a reason in a table.
const reasonShown = 100

// DeadLetters is the table of messages that could not be processed.
func DeadLetters(dead []bus.DeadLetter, now time.Time) Table {
	listed := make([]httpapi.DeadLetter, len(dead))
	for i, d := range dead {
		listed[i] = httpapi.DeadLetter{Subject: d.Subject, Sequence: d.Sequence, At: d.At, Reason: d.Reason, Bytes: len(d.Message)}
	}
	return DeadLettersOverHTTP(listed, now)
}

// DeadLettersOverHTTP is DeadLetters of what the HTTP API lists.
func DeadLettersOverHTTP(dead []httpapi.DeadLetter, now time.Time) Table {
	table := Table{Header: []string{"NUMBER", "SUBJECT", "GIVEN UP", "SIZE", "REASON"}}
	for _, d := range dead {
		table.Rows = append(table.Rows, []string{
			fmt.Sprint(d.Sequence), d.Subject, age(d.At, now), fmt.Sprint(d.Bytes), Short(d.Reason, reasonShown),
		})
	}
	return table
}
