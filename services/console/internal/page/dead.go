package page

import (
	"slices"
	"strings"
	"time"

	"muster.dev/muster/pkg/message/httpapi"
	"muster.dev/muster/services/internal/client/output"
)

// DeadLetters is the page of messages that could not be processed, the last one first.
type DeadLetters struct {
	Rows  []DeadLetterRow
	Older int // that are left out
	Paging
}

// DeadLetterRow is a message that could not be processed. The HTTP API leaves out its content, and
// what the reason quotes of that: both may have secrets.
type DeadLetterRow struct {
	Sequence                    uint64
	Subject, What, From, Reason string
	At, Stored                  time.Time
	Age                         string
	Bytes                       int
}

// MakeDeadLetters makes the page from row from on.
func MakeDeadLetters(answer httpapi.DeadLetters, from int, now time.Time) DeadLetters {
	page := DeadLetters{Older: answer.Older}
	letters := slices.Clone(answer.DeadLetters)
	slices.Reverse(letters)
	letters, page.Paging = cut(letters, from, DeadLettersLink+"?")
	for _, d := range letters {
		row := DeadLetterRow{
			Sequence: d.Sequence, Subject: d.Subject, Reason: output.Short(d.Reason, longestDeadReason),
			At: d.At, Stored: d.Stored, Age: output.Age(d.At, now), Bytes: d.Bytes,
		}
		row.What, row.From = originOf(d.Subject)
		page.Rows = append(page.Rows, row)
	}
	return page
}

// longestDeadReason bounds a reason in the list.
const longestDeadReason = 500

// originOf reads from the subject of a message what it is and where it came from; both are empty
// for a subject that is not Muster's.
func originOf(subject string) (what, from string) {
	parts := strings.SplitN(subject, ".", 4)
	if len(parts) < 3 || parts[0] != "muster" {
		return "", ""
	}
	switch parts[1] {
	case "submit":
		what, from = "submission or request", "queue "+parts[2]
		if len(parts) == 4 {
			from += ", user " + parts[3]
		}
	case "workload", "kept":
		what, from = "accepted submission or request", "queue "+parts[2]
	case "events":
		what, from = "event of a workload", "queue "+parts[2]
	case "capacity":
		what, from = "observation", "watcher of cluster "+parts[2]
	case "status":
		what, from = "status", "dispatcher of cluster "+parts[2]
	case "dispatch":
		what, from = "command", "for cluster "+parts[2]
	case "check":
		what, from = "question", "for AdmissionCheck "+parts[2]
	case "checked":
		what, from = "answer", "AdmissionCheck "+parts[2]
	}
	return what, from
}
