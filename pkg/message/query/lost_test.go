package query_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/testkit/bustest"
)

// An answer that is lost, as when NATS is started again, holds up no caller for ever: the
// dispatcher would not ask again which pods to evict.
func TestAnAnswerThatIsLostIsNotWaitedForForEver(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t).Conn()
	if _, err := nc.Subscribe(query.StraysSubject, func(*nats.Msg) {}); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := query.NewClient(nc).Strays(context.WithoutCancel(t.Context()))
		ended <- err
	}()
	select {
	case err := <-ended:
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a question without an answer ended with %v, want the end of its time", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("a question without an answer still waits")
	}
}
