package app

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/service"
	"muster.dev/muster/pkg/testkit/bustest"
	"muster.dev/muster/services/intake/internal/budget"
	"muster.dev/muster/services/intake/internal/submission"
	"muster.dev/muster/services/intake/internal/trial"
)

// serverOf makes a process of this test run intake on that NATS server.
const serverOf = "MUSTER_TEST_INTAKE_OF"

// TestMain runs a trial or intake in the processes that this test starts. In both, a
// deadly message kills the process that reads it.
func TestMain(m *testing.M) {
	trial.Main(func(_ ray.Operator, m submission.Message) { killedBy(m) })
	if url := os.Getenv(serverOf); url != "" {
		os.Exit(runIntake(url))
	}
	os.Exit(m.Run())
}

// killedBy kills the process, as the kernel does when it runs out of memory.
func killedBy(m submission.Message) {
	if bytes.Contains(m.Data, []byte("deadly")) {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

func runIntake(url string) int {
	b, err := bus.Connect(context.Background(), bus.Options{URL: url, Name: "intake", Logger: zap.NewNop()})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	in := newIntake(ray.Shipped(), b, budget.New(budget.Default()), service.NewRuntime(zap.NewNop(), "intake"))
	read := in.read
	in.read = func(m submission.Message) (submission.Result, error) {
		killedBy(m)
		return read(m)
	}
	if err := in.run(context.Background(), func() {}); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return 1
}

// TestADeadlyMessageIsGivenUp: a message that kills its readers ends a few of them, gets
// a trial, and is dead-lettered with a reason. Messages that were delivered with it as
// often are read.
func TestADeadlyMessageIsGivenUp(t *testing.T) {
	t.Parallel()
	b := bustest.Connect(t)
	accepted, err := b.Work(t.Context(), bus.Work{Stream: bus.WorkloadStream, Durable: "test"})
	if err != nil {
		t.Fatal(err)
	}
	events := follow(t, b, bus.EventsStream, "muster.events.>")
	const behind = 5
	const good = `{"apiVersion":"ray.io/v1","kind":"RayCluster","metadata":{"name":"good-%d"},"spec":{"headGroupSpec":{"template":{"spec":{"containers":[{"name":"ray","image":"rayproject/ray:2.54.0"}]}}}}}`
	publish(t, b, event.SubmitSubject("a"), "deadly", `{"metadata":{"name":"deadly"}}`)
	for i := range behind {
		publish(t, b, event.SubmitSubject("a"), fmt.Sprint(i), fmt.Sprintf(good, i))
	}
	ctx, stop := context.WithCancel(t.Context())
	deaths := make(chan int, 1)
	go func() {
		n := 0
		for ; ctx.Err() == nil; n++ {
			process := exec.CommandContext(ctx, os.Args[0])
			process.Env = append(os.Environ(), serverOf+"="+b.Conn().ConnectedUrl())
			_ = process.Run() // killed by the message, or in the end by the test
		}
		deaths <- n - 1
	}()
	defer stop()
	for range behind {
		d := next(t, accepted, "what waits behind the deadly message")
		_, payload, err := d.Event()
		if submitted, is := payload.(*event.WorkloadSubmitted); err != nil || !is || !strings.HasPrefix(submitted.Workload.Name, "good-") {
			t.Errorf("accepted %s, error %v", d.Data, err)
		}
		d.Ack()
	}
	d := next(t, events, "the rejection")
	_, payload, err := d.Event()
	if rejected, is := payload.(*event.WorkloadRejected); err != nil || !is || rejected.Queue != "a" || !strings.Contains(rejected.Reason.Message, "ends the process") {
		t.Errorf("event %s, error %v; want the rejection of the deadly submission", d.Data, err)
	}
	awaitSubjects(t, b, bus.SubmitStream, 0)
	awaitSubjects(t, b, bus.DeadStream, 1)
	stop()
	if n := <-deaths; n != suspectAfter-1 {
		t.Errorf("the message ended %d processes, want %d", n, suspectAfter-1)
	}
}

// next waits long: NATS redelivers a message only after its reader was silent.
func next(t *testing.T, from <-chan bus.Delivery, what string) bus.Delivery {
	t.Helper()
	select {
	case d := <-from:
		return d
	case <-time.After(3 * soon):
		t.Fatalf("waited %s for %s", 3*soon, what)
	}
	return bus.Delivery{}
}
