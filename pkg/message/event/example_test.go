package event_test

import (
	"fmt"
	"time"

	"muster.dev/muster/pkg/message/event"
)

// A cancellation is a CloudEvent; its subject names the workload.
func ExampleNew() {
	id := event.WorkloadID("team-a", "nightly-17")
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	envelope, err := event.New("cancel-nightly-17", "team-a", at, &event.WorkloadCancel{Workload: id, Why: "superseded"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(envelope.Type)
	fmt.Println(envelope.Subject == string(id))
	fmt.Println(string(envelope.Data))
	// Output:
	// dev.muster.workload.cancel.v1
	// true
	// {"workload":"d0394933-61d8-5a9f-a399-29dd0ab940c2","why":"superseded"}
}

// The same source and id name the same workload, however often it is submitted.
func ExampleWorkloadID() {
	id := event.WorkloadID("team-a", "nightly-17")
	fmt.Println(id)
	fmt.Println(id == event.WorkloadID("team-b", "nightly-17"))
	// Output:
	// d0394933-61d8-5a9f-a399-29dd0ab940c2
	// false
}
