package app

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/service"
	"muster.dev/muster/pkg/testkit/bustest"
	"muster.dev/muster/services/intake/internal/budget"
)

// TestAFullStreamIsSharedWhenItIsRead: while queue-manager is away, one queue fills the
// stream of accepted submissions and has more waiting. Once queue-manager has read a
// little, a later submission of another queue arrives; in the end all of both arrive.
func TestAFullStreamIsSharedWhenItIsRead(t *testing.T) {
	t.Parallel()
	const (
		waiting, honest = 60, 5
		settled         = 6 // large messages of the first queue: less than what of it waits
	)
	b := bustest.Connect(t)
	large := bytes.Repeat([]byte("x"), 1<<20)
	accepted := 0 // of the flood
	for ; ; accepted++ {
		answer, err := b.Conn().Request(event.WorkloadSubject("flood"), large, 20*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(answer.Data, []byte("error")) {
			break
		}
	}
	for size := len(large) / 2; size > 100; size /= 2 { // fill the rest
		for {
			answer, err := b.Conn().Request(event.WorkloadSubject("flood"), large[:size], 20*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(answer.Data, []byte("error")) {
				break
			}
			accepted++
		}
	}
	probe := event.Envelope{SpecVersion: "1.0", ID: "probe", Source: "test", Type: "test"}
	if err := b.Publish(t.Context(), event.WorkloadSubject("probe"), probe); !errors.Is(err, bus.ErrFull) {
		t.Fatalf("the stream is not full: %v", err)
	}
	in := newIntake(ray.Shipped(), b, budget.New(budget.Default()), service.NewRuntime(zap.NewNop(), "intake"))
	run(t, in, make(chan struct{}))
	submit := func(queue, name string, text int) {
		t.Helper()
		data := json.RawMessage(fmt.Sprintf(`{"apiVersion":"ray.io/v1","kind":"RayCluster","metadata":{"name":%q,"annotations":{"text":%q}},"spec":{"headGroupSpec":{"template":{"spec":{"containers":[{"name":"ray","image":"rayproject/ray:2.54.0"}]}}}}}`,
			name, bytes.Repeat([]byte("x"), text)))
		e := event.Envelope{SpecVersion: "1.0", ID: name, Source: "test", Type: event.SubmitType, Data: data}
		if err := b.Publish(t.Context(), event.SubmitSubject(queue), e); err != nil {
			t.Fatal(err)
		}
	}
	for i := range waiting {
		submit("flood", fmt.Sprintf("flood-%d", i), 200_000)
	}
	for i := range honest {
		submit("honest", fmt.Sprintf("honest-%d", i), 0)
	}

	work, err := b.Work(t.Context(), bus.Work{Stream: bus.WorkloadStream, Durable: "test", AckWait: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	read := map[string]int{}
	var held []bus.Delivery // not settled, so that they stay in the stream
	for read["honest"] < honest {
		d := within(t, work, fmt.Sprintf("one more than %v, when %d of the first queue are settled", read, settled))
		switch {
		case d.Subject == event.WorkloadSubject("honest"):
			read["honest"]++
			d.Ack()
		case read["flood"] < settled:
			read["flood"]++
			d.Ack()
		default:
			held = append(held, d)
		}
	}
	for _, d := range held {
		read["flood"]++
		d.Ack()
	}
	for read["flood"] < accepted+waiting {
		within(t, work, fmt.Sprintf("one more than %v of %d", read, accepted+waiting)).Ack()
		read["flood"]++
	}
}
