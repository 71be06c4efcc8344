package submission

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"muster.dev/muster/pkg/message/event"
)

// maxBatch bounds the events of a batch: each is answered on its own.
const maxBatch = 256

// batch is the place of a submission in its message; zero if the message is no batch.
type batch struct {
	number int   // from 1
	fault  error // why the whole batch is refused
}

// place distinguishes the submissions of a batch.
func (b batch) place() string {
	if b.number == 0 {
		return ""
	}
	return fmt.Sprintf("/%d", b.number)
}

// Split returns the submissions of a message: each event of a batch (CloudEvents JSON
// format, section 4), or the message itself. Each is accepted or rejected alone. A
// malformed batch is one submission, which Read rejects.
func Split(m Message) []Message {
	if !isBatch(m) {
		return []Message{m}
	}
	var events []json.RawMessage
	switch err := json.Unmarshal(m.Data, &events); {
	case len(m.Data) > event.MaxSubmission:
		m.fault = fmt.Errorf("the batch has %d bytes; at most %d are accepted", len(m.Data), event.MaxSubmission)
	case err != nil:
		m.fault = fmt.Errorf("%w: not a batch of CloudEvents in JSON: %w", event.ErrMalformed, err)
	case len(events) == 0 || len(events) > maxBatch:
		m.fault = fmt.Errorf("the batch has %d events; want 1 to %d", len(events), maxBatch)
	}
	if m.fault != nil {
		m.Data = nil
		return []Message{m}
	}
	submissions := make([]Message, len(events))
	for i, data := range events {
		submissions[i] = m
		submissions[i].Data, submissions[i].number = data, i+1
	}
	return submissions
}

// isBatch reports whether the message is a list. A CloudEvent in binary mode is a
// single one.
func isBatch(m Message) bool {
	for key := range m.Headers {
		if strings.HasPrefix(strings.ToLower(key), binaryPrefix) {
			return false
		}
	}
	return bytes.HasPrefix(bytes.TrimLeft(m.Data, " \t\r\n"), []byte("["))
}
