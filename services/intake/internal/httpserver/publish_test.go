package httpserver

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/testkit/bustest"
)

// TestARefusalOfNATSThatPassesIsRetried: the stream has no room when a submission is
// published, and has some at the next try, which has the same id.
func TestARefusalOfNATSThatPassesIsRetried(t *testing.T) {
	t.Parallel()
	b := bustest.Connect(t)
	js, err := jetstream.New(b.Conn())
	if err != nil {
		t.Fatal(err)
	}
	if err := js.DeleteStream(t.Context(), bus.WorkloadStream); err != nil { // the test answers in its place
		t.Fatal(err)
	}
	subject, ids := event.WorkloadSubject("q"), make(chan string, 10)
	answers := []string{`{"error": {"code": 503, "err_code": 10077, "description": "maximum bytes exceeded"}}`, `{"stream": "s", "seq": 1}`}
	_, err = b.Conn().Subscribe(subject, func(m *nats.Msg) {
		ids <- m.Header.Get(jetstream.MsgIDHeader)
		_ = m.Respond([]byte(answers[min(len(ids), len(answers))-1]))
	})
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Options: Options{Bus: b, Logger: zap.NewNop()}}
	if err := s.publish(t.Context(), subject, event.Envelope{SpecVersion: "1.0", ID: "one", Source: "test", Type: "test"}); err != nil {
		t.Fatal(err)
	}
	if first, second := <-ids, <-ids; len(ids) > 0 || first != "one" || second != "one" {
		t.Errorf("published are %q, %q and %d more, want it twice under its id", first, second, len(ids))
	}
}

// TestAFailureOfNATSThatMayPassHasWhenToRetry: the caller is to try again.
func TestAFailureOfNATSThatMayPassHasWhenToRetry(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		want int
	}{
		"there is no room":   {bus.ErrFull, http.StatusServiceUnavailable},
		"there is no stream": {bus.ErrNoStream, http.StatusServiceUnavailable},
		"it is too large":    {bus.ErrTooLarge, http.StatusInternalServerError},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &Server{Options: Options{Logger: zap.NewNop()}}
			w := httptest.NewRecorder()
			s.writeProblem(w, httptest.NewRequest(http.MethodPost, "/", nil), errors.Join(errors.New("publish the submission"), c.err))
			if w.Code != c.want || (w.Header().Get("Retry-After") != "") != (c.want == http.StatusServiceUnavailable) {
				t.Errorf("the answer is %d, Retry-After %q; want %d", w.Code, w.Header().Get("Retry-After"), c.want)
			}
		})
	}
}
