package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// pendingMessages is an outbox.
type pendingMessages []store.Outgoing

func (p pendingMessages) Unsent(context.Context, []string, int64, int) ([]store.Outgoing, error) {
	return p, nil
}

// keptMessages are the last messages of NATS, by subject.
type keptMessages map[string][]byte

func (k keptMessages) LastMessage(_ context.Context, _, subject string) (*bus.Delivery, error) {
	if bytes.Equal(k[subject], unreadable) {
		return nil, errUnreadable
	}
	if k[subject] == nil {
		return nil, nil
	}
	return &bus.Delivery{Subject: subject, Data: k[subject]}, nil
}

var (
	// unreadable stands for a message that NATS does not let queue-manager read.
	unreadable    = []byte("unreadable")
	errUnreadable = errors.New("no rights")
)

// The last message on the permission of a cluster tells whether its gangs have failed over: that
// in the outbox is later than that in NATS.
func TestFailedOver(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	message := func(g event.PermissionGranted) []byte {
		data, err := event.Marshal("1", event.QueueManagerSource, at, "", &g)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	moved := message(event.PermissionGranted{Cluster: "east", Session: 7})
	granted := message(event.PermissionGranted{Cluster: "east", Session: 7, Number: 3, For: workload.Duration(time.Minute)})
	subject := event.PermissionSubject("east")
	out := func(data ...[]byte) (all pendingMessages) {
		for i, d := range data {
			all = append(all, store.Outgoing{Seq: int64(i), Subject: subject, Message: d})
		}
		return append(all, store.Outgoing{Seq: 9, Subject: event.PermissionSubject("eastern"), Message: granted})
	}
	is := []state.FailedOver{{Cluster: "east", Session: 7, At: at}}
	for name, c := range map[string]struct {
		outbox pendingMessages
		nats   []byte
		want   []state.FailedOver
	}{
		"nothing is known":                      {},
		"NATS has that they have":               {nats: moved, want: is},
		"NATS has that it is granted since":     {nats: granted},
		"it is not published yet":               {outbox: out(moved), nats: granted, want: is},
		"it is granted, which is not published": {outbox: out(granted), nats: moved},
		"the last one in the outbox counts":     {outbox: out(granted, moved), want: is},
		"it is of another cluster":              {nats: message(event.PermissionGranted{Cluster: "west"})},
		"it is no event":                        {nats: json.RawMessage(`{"specversion":"1.0"`)},
		"it is another event on the subject":    {nats: must(t, event.PermissionAsked{Cluster: "east"})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, unread, err := failedOver(t.Context(), c.outbox, keptMessages{subject: c.nats}, []string{"east"})
			if err != nil || unread != nil {
				t.Fatal(err, unread)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A cluster of which NATS does not tell hides no other one, and ends no term. A refusal that passes
// is none.
func TestAPermissionThatCannotBeRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		moved, err := event.Marshal("1", event.QueueManagerSource, time.Unix(9, 0).UTC(), "", &event.PermissionGranted{Cluster: "east", Session: 7})
		if err != nil {
			t.Fatal(err)
		}
		nats := &electing{keptMessages: keptMessages{event.PermissionSubject("east"): moved, event.PermissionSubject("west"): unreadable}, until: time.Now().Add(3 * time.Second)}
		began := time.Now()
		got, unread, err := failedOver(t.Context(), pendingMessages{}, nats, []string{"west", "east"})
		if err != nil || !errors.Is(unread, errUnreadable) || !strings.Contains(unread.Error(), `"west"`) || strings.Contains(unread.Error(), `"east"`) {
			t.Errorf("unread is %v, %v; want that of west", unread, err)
		}
		if diff := cmp.Diff([]state.FailedOver{{Cluster: "east", Session: 7, At: time.Unix(9, 0).UTC()}}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if took := time.Since(began); took > permissionsRead {
			t.Errorf("it took %s, want %s at most", took, permissionsRead)
		}
	})
}

// electing are servers of NATS that serve a stream only later.
type electing struct {
	keptMessages
	until time.Time
}

func (e *electing) LastMessage(ctx context.Context, stream, subject string) (*bus.Delivery, error) {
	if time.Now().Before(e.until) {
		return nil, errUnreadable
	}
	return e.keptMessages.LastMessage(ctx, stream, subject)
}

func must(t *testing.T, asked event.PermissionAsked) []byte {
	t.Helper()
	data, err := event.Marshal("1", "test", time.Unix(0, 0), "", &asked)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
