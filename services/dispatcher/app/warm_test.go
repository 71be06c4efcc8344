package app

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
)

// fakeServer is an API server that the test connects to and that gives the errors in turn, then none.
type fakeServer struct {
	connected chan struct{}
	errors    []error
	warmed    chan string
}

func (s *fakeServer) Connected() <-chan struct{} { return s.connected }

func (s *fakeServer) Warm(_ context.Context, namespace string) (err error) {
	if len(s.errors) > 0 {
		err, s.errors = s.errors[0], s.errors[1:]
		return err
	}
	s.warmed <- namespace
	return nil
}

// The API server is warmed once for each new connection, in the namespace that was used last, and
// again until it answers; not before a namespace is known.
func TestTheAPIServerIsWarmedAfterEachConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &fakeServer{connected: make(chan struct{}, 1), warmed: make(chan string, 10), errors: []error{errors.New("connection refused")}}
		w := &warmer{cluster: s, logger: zap.NewNop(), again: warmAgain, known: make(chan struct{})}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.run(ctx) }()
		s.connected <- struct{}{}
		expect := func(when string, want ...string) {
			t.Helper()
			time.Sleep(3 * warmAgain) // of synctest's clock
			synctest.Wait()
			var got []string
			for len(s.warmed) > 0 {
				got = append(got, <-s.warmed)
			}
			if len(got) != len(want) || len(want) > 0 && got[0] != want[0] {
				t.Errorf("%s: it was warmed in %v, want %v", when, got, want)
			}
		}
		expect("without a namespace")
		w.use("")
		expect("with a command that has no namespace")
		w.use("first")
		expect("with a namespace, after an attempt that failed", "first")
		w.use("second")
		expect("without a new connection")
		s.connected <- struct{}{}
		expect("after a new connection", "second")
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("it ended with %v, want the context's error", err)
		}
	})
}
