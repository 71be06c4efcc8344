package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	// unstoredMost is how long messages may go without an answer before the storage of
	// NATS is taken for full: a server whose disk is full does not answer at all.
	unstoredMost = 15 * time.Second
	// unstoredAgain is how much later than the first another message has to go without an
	// answer. Those of one moment, such as the dead letters at the end of a term, do not show
	// that NATS stores nothing after it.
	unstoredAgain = time.Second
	// unstoredKept is when a failure is forgotten that did not happen again.
	unstoredKept = time.Minute
)

// storageResources and noPeers are the server's JSStorageResourcesExceededErr and
// JSClusterNoPeersErrF. One server returns the first, several return the second with what they
// lack in its text.
const (
	storageResources jetstream.ErrorCode = 10047
	noPeers          jetstream.ErrorCode = 10005
)

// Storage notes what NATS did not store, by the kind of the subject. Its methods may
// be called concurrently. The zero value has nothing noted.
type Storage struct {
	mu      sync.Mutex
	failing map[string]unstored
}

type unstored struct {
	since, last time.Time
	err         error
	certain     bool // the server itself reports that it has no room
}

// Note notes how the storage of a message on a subject ended, or that of something else by its
// name.
func (s *Storage) Note(subject string, err error, now time.Time) {
	what := kindOf(subject)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		delete(s.failing, what)
		return
	}
	certain := withoutRoom(err)
	if !certain && !errors.Is(err, context.DeadlineExceeded) {
		return
	}
	if s.failing == nil {
		s.failing = map[string]unstored{}
	}
	u := s.failing[what]
	if u.since.IsZero() || now.Sub(u.last) > unstoredKept {
		u = unstored{since: now}
	}
	u.last, u.err, u.certain = now, err, certain
	s.failing[what] = u
}

// Failure returns an error while NATS stores nothing, as far as it was noted.
func (s *Storage) Failure(now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var failures []error
	for what, u := range s.failing {
		switch {
		case now.Sub(u.last) > unstoredKept:
			delete(s.failing, what)
		case u.certain:
			failures = append(failures, fmt.Errorf("NATS has no room for %s since %s%s: %w", what, u.since.UTC().Format(time.RFC3339), adviceFor(u.err), u.err))
		case now.Sub(u.since) >= unstoredMost && u.last.Sub(u.since) >= unstoredAgain:
			failures = append(failures, fmt.Errorf("NATS has stored nothing of %s since %s; if its disk is full, make room and restart it: %w",
				what, u.since.UTC().Format(time.RFC3339), u.err))
		}
	}
	slices.SortFunc(failures, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(failures...)
}

// adviceFor returns what to do about a server without room for messages.
func adviceFor(err error) string {
	var refused *jetstream.APIError
	switch {
	case onFullDisk(err):
		return "; make room and restart it"
	case errors.As(err, &refused) && refused.ErrorCode == accountResources:
		return "; the account has reached its limit: raise max_file in the jetstream block of the account, and reload NATS"
	}
	return ""
}

// withoutRoom recognizes the errors of a server that has no room for messages or
// streams. That a queue is full is none of them.
func withoutRoom(err error) bool {
	var refused *jetstream.APIError
	return onFullDisk(err) || tooSmall(err) || errors.As(err, &refused) &&
		slices.Contains([]jetstream.ErrorCode{accountResources, insufficientResources, memoryResources}, refused.ErrorCode)
}

// tooSmall recognizes the errors of servers whose max_file_store, or that of the account, is
// smaller than what the streams may take.
func tooSmall(err error) bool {
	var refused *jetstream.APIError
	return errors.As(err, &refused) && (refused.ErrorCode == storageResources ||
		refused.ErrorCode == noPeers && strings.Contains(refused.Description, "insufficient storage"))
}

// onFullDisk recognizes the errors of a server whose disk is full. A stream that failed to write
// stores nothing until the server is restarted, even when the disk has room again.
func onFullDisk(err error) bool {
	var refused *jetstream.APIError
	return errors.As(err, &refused) && strings.Contains(refused.Description, "no space left on device")
}

// withoutFiles recognizes the errors of a server that has a stream, or a consumer, whose
// files are gone. It does not make them again by itself.
func withoutFiles(err error) bool {
	var refused *jetstream.APIError
	return errors.As(err, &refused) &&
		(strings.Contains(refused.Description, "no such file or directory") || strings.Contains(refused.Description, "lmb missing")) &&
		slices.Contains([]jetstream.ErrorCode{streamUpdateFailed, streamCreateFailed, streamFailed, consumerBroken, purgeFailed}, refused.ErrorCode)
}

const (
	streamUpdateFailed jetstream.ErrorCode = 10069 // JSStreamUpdateErrF
	streamCreateFailed jetstream.ErrorCode = 10049 // JSStreamCreateErrF
	streamFailed       jetstream.ErrorCode = 10051 // JSStreamGeneralErrorF
	purgeFailed        jetstream.ErrorCode = 10110 // JSStreamPurgeFailedF
)

// kindOf is the beginning of a subject, by which its stream is known.
func kindOf(subject string) string {
	parts := strings.SplitN(subject, ".", 3)
	return strings.Join(parts[:min(len(parts), 2)], ".")
}

// Storage returns an error while NATS stores nothing: its disk or max_file_store is
// full, or too small for Muster's streams.
func (b *Bus) Storage() error {
	if b.Ready() != nil {
		return nil // that is another condition
	}
	return b.storage.Failure(time.Now())
}

// storeNeeded is what max_file_store has to be at least: what the streams reserve
// that are bounded, and as much again for those that are not.
func storeNeeded() int64 {
	reserved := int64(0)
	for _, config := range streams() {
		reserved += max(0, config.MaxBytes)
	}
	return 2 * reserved
}
