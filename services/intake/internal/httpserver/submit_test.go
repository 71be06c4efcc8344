package httpserver

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/httpapi"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/testkit/bustest"
	"muster.dev/muster/services/intake/internal/budget"
)

// smallCluster is a RayCluster that can be submitted.
const smallCluster = `{"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "small"}, "spec": {"headGroupSpec": {
	"rayStartParams": {}, "template": {"spec": {"containers": [{"name": "ray-head", "image": "rayproject/ray:2.46.0", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]}}}}}`

// TestASubmissionGetsItsOwnAnswer: events of a workload with other content under the same
// Idempotency-Key, and rejections of other submissions, are no answers.
func TestASubmissionGetsItsOwnAnswer(t *testing.T) {
	t.Parallel()
	changed := func(digest string, p workload.Phase) func(*event.WorkloadSubmitted) event.Payload {
		return func(s *event.WorkloadSubmitted) event.Payload {
			w := s.Workload
			if digest != "" {
				w.Digest = digest
			}
			return &event.WorkloadChanged{Record: workload.Record{Workload: w, Phase: p}}
		}
	}
	rejected := func(messageID string, kind workload.ReasonKind) func(*event.WorkloadSubmitted) event.Payload {
		return func(s *event.WorkloadSubmitted) event.Payload {
			id := s.MessageID
			if messageID != "" {
				id = messageID
			}
			return &event.WorkloadRejected{Workload: s.Workload.ID, Queue: s.Workload.Queue, MessageID: id, Reason: workload.Reason{Kind: kind, Message: "no"}}
		}
	}
	for name, c := range map[string]struct {
		events []func(*event.WorkloadSubmitted) event.Payload
		want   int
	}{
		"it is queued":                    {[]func(*event.WorkloadSubmitted) event.Payload{changed("", workload.Queued)}, http.StatusCreated},
		"it is refused":                   {[]func(*event.WorkloadSubmitted) event.Payload{rejected("", workload.ReasonFull)}, http.StatusTooManyRequests},
		"other content is starting":       {[]func(*event.WorkloadSubmitted) event.Payload{changed("other", workload.Dispatched), rejected("", workload.ReasonDuplicate)}, http.StatusConflict},
		"another submission is refused":   {[]func(*event.WorkloadSubmitted) event.Payload{rejected("another", workload.ReasonFull), changed("", workload.Queued)}, http.StatusCreated},
		"the same content starts already": {[]func(*event.WorkloadSubmitted) event.Payload{changed("", workload.Dispatched)}, http.StatusCreated},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := bustest.Connect(t)
			answered := answerWith(t, b, c.events)
			s := &Server{Options: Options{Bus: b, Operator: ray.Shipped(), Budget: budget.New(budget.Default()), Logger: zap.NewNop()}}
			r := httptest.NewRequest(http.MethodPost, "/v1/queues/q/workloads", strings.NewReader(smallCluster)).WithContext(t.Context())
			r.SetPathValue("queue", "q")
			r.Header.Set(httpapi.IdempotencyKey, "key")
			w := httptest.NewRecorder()
			got := http.StatusInternalServerError
			err := s.submit(w, r, "http/alice")
			<-answered
			if failed := (*failure)(nil); errors.As(err, &failed) {
				got = failed.status
			} else if err == nil {
				got = w.Code
			}
			if got != c.want {
				t.Errorf("the answer is %d (%v, %s), want %d", got, err, w.Body, c.want)
			}
		})
	}
}

// answerWith publishes events about the submission, in the place of queue-manager. The channel is
// closed when it has.
func answerWith(t *testing.T, b *bus.Bus, events []func(*event.WorkloadSubmitted) event.Payload) <-chan struct{} {
	t.Helper()
	answered := make(chan struct{})
	over := sync.OnceFunc(func() { close(answered) })
	_, err := b.Conn().Subscribe(event.WorkloadSubject("q"), func(m *nats.Msg) {
		defer over()
		_, payload, err := (bus.Delivery{Subject: m.Subject, Data: m.Data, Headers: m.Header}).Event()
		submitted, is := payload.(*event.WorkloadSubmitted)
		if err != nil || !is {
			t.Errorf("published is %T, %v", payload, err)
			return
		}
		for _, of := range events {
			e, err := event.New(event.NewID(), "test", time.Now(), of(submitted))
			if err == nil {
				err = b.Publish(t.Context(), event.EventsSubject("q", submitted.Workload.ID), e)
			}
			if err != nil {
				t.Error(err)
			}
		}
	})
	if err == nil {
		err = b.Conn().FlushTimeout(20 * time.Second)
	}
	if err != nil {
		t.Fatal(err)
	}
	return answered
}

// TestWhatComesAgainIsNoAnswer: after a reconnection the last event from before the submission
// is delivered once more.
func TestWhatComesAgainIsNoAnswer(t *testing.T) {
	t.Parallel()
	a := awaited{after: 7, digest: "d", messageID: "m"}
	delivery := func(sequence uint64, p event.Payload) bus.Delivery {
		data, err := event.Marshal("1", "test", time.Unix(1_800_000_000, 0), "", p)
		if err != nil {
			t.Fatal(err)
		}
		return bus.Delivery{Sequence: sequence, Data: data}
	}
	full := &event.WorkloadRejected{MessageID: "m", Reason: workload.Reason{Kind: workload.ReasonFull}}
	queued := &event.WorkloadChanged{Record: workload.Record{Workload: workload.Workload{Digest: "d"}, Phase: workload.Queued}}
	for _, p := range []event.Payload{full, queued} {
		for sequence, want := range map[uint64]bool{6: false, 7: false, 8: true} {
			if record, reason := a.answer(delivery(sequence, p)); (record != nil || reason != nil) != want {
				t.Errorf("%s at sequence %d is an answer: %v, want %v", p.EventType(), sequence, !want, want)
			}
		}
	}
}
