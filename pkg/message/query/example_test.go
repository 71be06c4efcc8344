package query_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/nats-io/nats.go"

	"muster.dev/muster/pkg/local/natsserver"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
)

// A queue-manager answers the questions on a subject; a client asks for the workloads that
// wait in a queue.
func ExampleClient_Workloads() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	server, err := natsserver.Start(dir, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Stop()
	nc, err := nats.Connect(server.URL())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer nc.Close()
	err = query.Handle(ctx, nc, query.WorkloadsSubject, func(_ context.Context, r query.WorkloadsRequest) (query.WorkloadsAnswer, error) {
		waits := workload.Record{
			Workload: workload.Workload{ID: "w-1", Queue: r.Queue, Namespace: "team-a", Name: "train"}, Phase: workload.Queued,
			Reason: &workload.Reason{Kind: workload.ReasonFit, Message: "1 of 8 pods does not fit"},
		}
		return query.WorkloadsAnswer{Workloads: []workload.Record{waits}}, nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	answer, err := query.NewClient(nc).Workloads(ctx, query.WorkloadsRequest{Queue: "research", Phases: []workload.Phase{workload.Queued}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, record := range answer.Workloads {
		fmt.Printf("%s/%s of queue %s is %s: %s\n", record.Namespace, record.Name, record.Queue, record.Phase, record.Reason.Message)
	}
	// Output: team-a/train of queue research is queued: 1 of 8 pods does not fit
}
