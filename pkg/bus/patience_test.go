package bus_test

import (
	"net/url"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"muster.dev/muster/pkg/bus"
)

const rightPassword, otherPassword = "right", "other"

// startGuarded starts a server that accepts one password, which can be changed.
func startGuarded(t *testing.T, password string) (address string, accept func(password string)) {
	t.Helper()
	options := func(password string) *server.Options {
		return &server.Options{Host: "127.0.0.1", Port: -1, NoSigs: true, NoLog: true, Username: "service", Password: password}
	}
	s, err := server.NewServer(options(password))
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
	return at.String(), func(password string) {
		if err := s.ReloadOptions(options(password)); err != nil {
			t.Error(err)
		}
	}
}

// hooked returns a logger that calls do for each message.
func hooked(do func(message string)) *zap.Logger {
	core, _ := observer.New(zapcore.DebugLevel)
	return zap.New(core, zap.Hooks(func(e zapcore.Entry) error {
		do(e.Message)
		return nil
	}))
}

// TestPatientConnect: a service that starts before the server knows its credentials
// waits for them, longer than ConnectTimeout.
func TestPatientConnect(t *testing.T) {
	t.Parallel()
	address, accept := startGuarded(t, otherPassword)
	tries := 0
	logger := hooked(func(message string) {
		if message == "cannot connect to NATS; retrying" {
			if tries++; tries == 2 {
				accept(rightPassword)
			}
		}
	})
	b, err := bus.Connect(t.Context(), bus.Options{URL: address, Logger: logger, ConnectTimeout: time.Millisecond, Patient: true})
	if err != nil {
		t.Fatalf("Connect: %v; want it to wait", err)
	}
	b.Close()
}

// TestRotationOfCredentials: a connection comes back after its credentials have been
// refused more than once.
func TestRotationOfCredentials(t *testing.T) {
	t.Parallel()
	address, accept := startGuarded(t, rightPassword)
	refused, lost := make(chan struct{}, 100), make(chan struct{}, 100)
	logger := hooked(func(message string) {
		switch message {
		case "NATS reports an error":
			refused <- struct{}{}
		case "connection to NATS lost":
			lost <- struct{}{}
		}
	})
	b, err := bus.Connect(t.Context(), bus.Options{URL: address, Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	reconnected, done := b.Reconnected()
	defer done()
	accept(otherPassword)
	<-lost
	for range 3 {
		select {
		case <-refused:
		case <-time.After(30 * time.Second):
			t.Fatal("the connection is not tried any more")
		}
	}
	accept(rightPassword)
	select {
	case <-reconnected:
	case <-time.After(30 * time.Second):
		t.Fatal("the connection does not come back")
	}
}
