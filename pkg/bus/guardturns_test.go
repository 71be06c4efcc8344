package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"

	"muster.dev/muster/pkg/local/natsserver"
)

// TestRequestsOfOneClusterLeaveRoomForOthers: however many consumers the key of a cluster asks for, and
// whatever the names and filters, those of another cluster have their turn.
func TestRequestsOfOneClusterLeaveRoomForOthers(t *testing.T) {
	t.Parallel()
	server, err := natsserver.Start(t.TempDir(), -1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	b, err := Connect(t.Context(), Options{URL: server.URL(), Name: t.Name(), Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	inbox := nats.NewInbox()
	answers, err := b.Conn().SubscribeSync(inbox)
	if err != nil {
		t.Fatal(err)
	}
	turns, forwarded := &guardTurns{}, make(chan *nats.Msg, buffered)
	ask := func(subject string) {
		request := nats.NewMsg(GuardSubject + subject)
		request.Reply = inbox
		request.Sub = answers // by whose connection it is answered
		b.enqueue(request, turns, forwarded)
	}
	for i := range consumersOpen + 2 {
		ask("CONSUMER.CREATE." + DispatchStream + "." + strings.Repeat("n", i+1) + ".muster.dispatch.west." + strings.Repeat("x", i+1))
	}
	if len(forwarded) != consumersOpen {
		t.Errorf("%d requests of one cluster are forwarded, want %d", len(forwarded), consumersOpen)
	}
	for range 2 {
		answer, err := answers.NextMsg(10 * time.Second)
		if err != nil || !strings.Contains(string(answer.Data), "16 requests for CONSUMER.CREATE.MUSTER_DISPATCH.muster.dispatch.west are open") {
			t.Fatalf("the others are answered %v, %v", answer, err)
		}
	}
	ask("CONSUMER.CREATE." + DispatchStream + ".n.muster.dispatch.east.*")
	ask("CONSUMER.CREATE." + StatusStream + ".n.muster.status.west.*")
	ask(guardStreams + DispatchStream)
	if want := consumersOpen + 3; len(forwarded) != want {
		t.Errorf("%d requests are forwarded, want %d: another cluster's, another stream's and one for a stream", len(forwarded), want)
	}
	turns.end(guardKey((<-forwarded).Subject))
	ask("CONSUMER.CREATE." + DispatchStream + ".again.muster.dispatch.west.*")
	if want := consumersOpen + 3; len(forwarded) != want {
		t.Errorf("%d requests are forwarded after one has ended, want %d", len(forwarded), want)
	}
}

// TestAReaderWaitsForItsTurn: one that is refused because others ask for the same is not refused for
// good.
func TestAReaderWaitsForItsTurn(t *testing.T) {
	t.Parallel()
	busy := &jetstream.APIError{Code: guardBusy, Description: "16 requests are open; try again"}
	for name, c := range map[string]struct {
		refusals []error
		want     error
	}{
		"twice busy":     {[]error{busy, fmt.Errorf("follow: %w", busy), nil}, nil},
		"another reason": {[]error{busy, ErrNoStream}, ErrNoStream},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tries := 0
			_, err := untilFree(t.Context(), func(context.Context) (jetstream.Consumer, error) {
				tries++
				return nil, c.refusals[tries-1]
			})
			if !errors.Is(err, c.want) || tries != len(c.refusals) {
				t.Errorf("%v after %d tries, want %v after %d", err, tries, c.want, len(c.refusals))
			}
		})
	}
}

func TestALargeRequestIsNotDecoded(t *testing.T) {
	t.Parallel()
	for name, data := range map[string]string{
		"long": `{"stream_name":"` + strings.Repeat("x", 16<<10) + `"}`,
		"deep": `{"config":{"metadata":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `}}`,
		"many": `{"config":{"filter_subjects":[` + strings.Repeat(`"",`, 1000) + `""]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := (&Bus{}).guarded("CONSUMER.CREATE."+DispatchStream+".a", []byte(data)); err == nil || !strings.Contains(err.Error(), "the request for a consumer") {
				t.Errorf("error %v", err)
			}
		})
	}
}
