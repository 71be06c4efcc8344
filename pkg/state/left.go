package state

import (
	"strings"
)

// Between the reason of a workload that is torn down and what is left of it.
const (
	waitsForLeft = "; its removal waits for "
	leftBehind   = "; left behind: "
)

// explainLeft adds to the reason of a workload that is torn down what its removal waits for,
// or what it leaves behind; an empty text takes that back. It reports whether the reason has
// changed.
func (l *lifecycle) explainLeft(e *entry, separator, left string) (changed bool) {
	if e.Reason == nil {
		return false
	}
	message := e.Reason.Message
	if i := strings.LastIndex(message, waitsForLeft); i >= 0 {
		message = message[:i]
	}
	if left != "" {
		message += separator + strings.ReplaceAll(sanitize(left), waitsForLeft, "; ")
	}
	if message == e.Reason.Message {
		return false
	}
	reason := *e.Reason
	reason.Message, e.Reason = message, &reason
	return true
}
