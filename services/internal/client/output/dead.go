package output

import (
	"fmt"
	"time"

	"muster.dev/muster/pkg/bus"
)

// reasonShown bounds a reason in a table.
const reasonShown = 100

// DeadLetters is the table of messages that could not be processed.
func DeadLetters(dead []bus.DeadLetter, now time.Time) Table {
	table := Table{Header: []string{"NUMBER", "SUBJECT", "GIVEN UP", "SIZE", "REASON"}}
	for _, d := range dead {
		table.Rows = append(table.Rows, []string{
			fmt.Sprint(d.Sequence), d.Subject, age(d.At, now), fmt.Sprint(len(d.Message)), Short(d.Reason, reasonShown),
		})
	}
	return table
}
