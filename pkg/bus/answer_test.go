package bus_test

import (
	"context"
	"errors"
	"net/url"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
)

// TestAPublicationWithoutAnAnswerEnds: a stream that has lost its files takes messages
// and answers none. Those who wait without a bound of their own go on; they publish
// again.
func TestAPublicationWithoutAnAnswerEnds(t *testing.T) {
	t.Parallel()
	address, _ := startGuarded(t, rightPassword)
	b, err := bus.Connect(t.Context(), bus.Options{URL: address, Logger: zap.NewNop(), AnswerTimeout: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	const subject = "muster.status.c.w"
	taken, err := b.Listen(t.Context(), subject) // takes it in place of the stream
	if err != nil {
		t.Fatal(err)
	}
	envelope, err := event.New("1", "test", time.Now(), &event.WorkloadCancel{Workload: "w"})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- b.Publish(context.WithoutCancel(t.Context()), subject, envelope) }()
	<-taken
	select {
	case err := <-ended:
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it ends with %v; want that the time is over", err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("it waits for ever")
	}
}

// TestAwaitStreamsOutlastsRefusals: rights that come later, as those of a new key, are
// waited for.
func TestAwaitStreamsOutlastsRefusals(t *testing.T) {
	t.Parallel()
	account := server.NewAccount("muster")
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: -1, NoSigs: true, NoLog: true, JetStream: true, StoreDir: t.TempDir(), Accounts: []*server.Account{account},
		Users: []*server.User{{Username: "service", Password: rightPassword, Account: account}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(s.Shutdown)
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the NATS server does not start")
	}
	at, err := url.Parse(s.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	at.User = url.UserPassword("service", rightPassword)
	tries := 0
	logger := hooked(func(message string) {
		if message != "cannot create streams; retrying" {
			return
		}
		if tries++; tries == 2 {
			account, err := s.LookupAccount("muster")
			if err == nil {
				err = account.EnableJetStream(nil, nil)
			}
			if err != nil {
				t.Error(err)
			}
		}
	})
	b, err := bus.Connect(t.Context(), bus.Options{URL: at.String(), Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	if err := b.AwaitStreams(t.Context()); err != nil {
		t.Fatalf("it ends with %v; want it to wait", err)
	}
	if tries < 2 {
		t.Errorf("it was refused %d times; want at least 2", tries)
	}
}
