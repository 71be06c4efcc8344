package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// TestStorageNotes: what NATS did not store becomes a failure after unstoredMost without an
// answer to messages of at least two moments, or at once when NATS returned that it has no room. It ends with a stored
// message, or with unstoredKept without another failure.
func TestStorageNotes(t *testing.T) {
	t.Parallel()
	noAnswer := fmt.Errorf("publish: %w", context.DeadlineExceeded)
	noRoom := fmt.Errorf("publish: %w", &jetstream.APIError{ErrorCode: insufficientResources, Description: "insufficient resources"})
	fullDisk := &jetstream.APIError{ErrorCode: 10077, Description: "error writing: no space left on device"}
	accountFull := &jetstream.APIError{ErrorCode: accountResources, Description: "resource limits exceeded for account"}
	noPeer := &jetstream.APIError{ErrorCode: noPeers, Description: "no suitable peers for placement, insufficient storage"}
	awayPeer := &jetstream.APIError{ErrorCode: noPeers, Description: "no suitable peers for placement, peer offline"}
	queueFull := &jetstream.APIError{ErrorCode: 10077, Description: "maximum messages exceeded"}
	const advice = "make room and restart it"
	type note struct {
		at   time.Duration
		what string
		err  error
	}
	for name, c := range map[string]struct {
		notes []note
		at    time.Duration
		want  []string // parts of the failure, in order; none when there is no failure
	}{
		"nothing was published":         {at: time.Hour},
		"no answer for a moment":        {notes: []note{{0, "a", noAnswer}, {14 * time.Second, "a", noAnswer}}, at: unstoredMost - 1},
		"no answer for long":            {notes: []note{{0, "a", noAnswer}, {14 * time.Second, "a", noAnswer}}, at: unstoredMost, want: []string{"stored nothing of a since 1970-01-01T00:00:00Z", advice}},
		"one message without an answer": {notes: []note{{0, "a", noAnswer}}, at: unstoredKept},
		"messages of one moment":        {notes: []note{{0, "a", noAnswer}, {unstoredAgain - 1, "a", noAnswer}}, at: unstoredKept},
		"another one soon after":        {notes: []note{{0, "a", noAnswer}, {unstoredAgain, "a", noAnswer}}, at: unstoredMost, want: []string{advice}},
		"another one late":              {notes: []note{{0, "a", noAnswer}, {unstoredKept, "a", noAnswer}}, at: unstoredKept, want: []string{advice}},
		"stored meanwhile":              {notes: []note{{0, "a", noAnswer}, {10 * time.Second, "a", nil}, {11 * time.Second, "a", noAnswer}}, at: unstoredMost + time.Second},
		"stored again":                  {notes: []note{{0, "a", noAnswer}, {20 * time.Second, "a", nil}}, at: 20 * time.Second},
		"another kind was stored":       {notes: []note{{0, "a", noAnswer}, {10 * time.Second, "a", noAnswer}, {20 * time.Second, "b", nil}}, at: 20 * time.Second, want: []string{"nothing of a", advice}},
		"two kinds": {notes: []note{{0, "b", noAnswer}, {5 * time.Second, "a", noAnswer}, {6 * time.Second, "b", noAnswer}, {7 * time.Second, "a", noAnswer}}, at: 30 * time.Second,
			want: []string{"nothing of a since 1970-01-01T00:00:05Z", "nothing of b since 1970-01-01T00:00:00Z"}},
		"nothing more was published": {notes: []note{{0, "a", noAnswer}, {2 * time.Second, "a", noAnswer}}, at: unstoredKept, want: []string{advice}},
		"it did not happen again":    {notes: []note{{0, "a", noAnswer}, {2 * time.Second, "a", noAnswer}}, at: 2*time.Second + unstoredKept + 1},
		"it began over":              {notes: []note{{0, "a", noAnswer}, {unstoredKept + 1, "a", noAnswer}, {unstoredKept + 5*time.Second, "a", noAnswer}}, at: unstoredKept + unstoredMost},
		"no room":                    {notes: []note{{0, "a", noRoom}}, at: 0, want: []string{"no room for a since 1970-01-01T00:00:00Z: ", "insufficient resources"}},
		"no room on the disk":        {notes: []note{{0, "a", fullDisk}}, at: 0, want: []string{"no room for a", advice, "no space left on device"}},
		"no room in the account":     {notes: []note{{0, "a", accountFull}}, at: 0, want: []string{"no room for a", "raise max_file", "resource limits exceeded"}},
		"no room on several servers": {notes: []note{{0, "a", noPeer}}, at: 0, want: []string{"no room for a", "insufficient storage"}},
		"too few servers":            {notes: []note{{0, "a", awayPeer}}, at: 0},
		"no room, long ago":          {notes: []note{{0, "a", noRoom}}, at: unstoredKept + 1},
		"no room, then no answer": {notes: []note{{0, "a", noRoom}, {20 * time.Second, "a", noAnswer}}, at: 20 * time.Second,
			want: []string{"nothing of a since 1970-01-01T00:00:00Z", advice}},
		"a full queue":         {notes: []note{{0, "a", queueFull}}, at: 20 * time.Second},
		"another error":        {notes: []note{{0, "a", errors.New("broken")}}, at: 20 * time.Second},
		"an error among those": {notes: []note{{0, "a", noAnswer}, {time.Second, "a", queueFull}, {2 * time.Second, "a", noAnswer}}, at: unstoredMost, want: []string{advice}},
		"an error after one":   {notes: []note{{0, "a", noAnswer}, {2 * time.Second, "a", queueFull}}, at: unstoredMost},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begin := time.Unix(0, 0)
			var s Storage
			for _, n := range c.notes {
				s.Note(n.what, n.err, begin.Add(n.at))
			}
			failure := s.Failure(begin.Add(c.at))
			if (failure != nil) != (len(c.want) > 0) {
				t.Fatalf("failure is %v, want one with %q", failure, c.want)
			}
			rest := fmt.Sprint(failure)
			for _, part := range c.want {
				_, after, found := strings.Cut(rest, part)
				if !found {
					t.Fatalf("failure is %v, want one with %q in this order", failure, c.want)
				}
				rest = after
			}
		})
	}
}
