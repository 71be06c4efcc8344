package access_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"muster.dev/muster/deploy/nats/access"
	"muster.dev/muster/deploy/nats/keys"
	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
)

// What passes between clusters by way of queue-manager does so from the accounts of their services:
// objects that a queue carries, and what the intake of a further cluster submits and follows.
func TestFurtherClustersWorkFromTheirAccounts(t *testing.T) {
	t.Parallel()
	const id = "0d1b9e4c-1f0e-5b7e-9a52-0c2f3f1f2a3b"
	url, dir := start(t, append(access.Users("here", "there"), memberIntake(t, "there", "q")))
	as := func(user string) *bus.Bus {
		t.Helper()
		b, err := connect(t, url, keys.File(dir, user))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	manager := as(access.QueueManager)
	must(manager.GuardJetStream(ctx))
	must(manager.EnsureStreams(ctx))
	dispatcher := as(access.Dispatcher("here"))
	// An object that a queue carries to another cluster, from dispatcher to dispatcher.
	carrier, err := query.NewCarrier(ctx, manager.Conn())
	must(err)
	must(query.HandleCarry(ctx, manager.Conn(), func(ctx context.Context, cluster string, r query.CarryRequest) (query.CarryAnswer, error) {
		object, err := carrier.Fetch(ctx, "there", query.CarriedWanted{Kind: r.Kind, Name: r.Name})
		return query.CarryAnswer{From: cluster, Object: object}, err
	}))
	there := as(access.Dispatcher("there"))
	carried := query.CarriedObject{Text: map[string]string{"a": "b"}}
	carried.Digest, err = carried.Sum()
	must(err)
	must(query.HandleCarried(ctx, there.Conn(), "there", func(context.Context, query.CarriedWanted) (*query.CarriedObject, error) { return &carried, nil }))
	must(there.Conn().FlushTimeout(patience))
	must(manager.Conn().FlushTimeout(patience))
	if answer, err := query.NewClient(dispatcher.Conn()).Carry(ctx, "here", query.CarryRequest{Workload: id, Kind: "ConfigMap", Name: "a"}); err != nil || answer.Object == nil || answer.Object.Text["a"] != "b" {
		t.Errorf("the dispatcher is carried %+v, %v", answer, err)
	}
	// The intake of a further cluster submits by way of queue-manager.
	must(query.HandleHome(ctx, manager.Conn(), func(_ context.Context, cluster, queue string, _ query.HomeRequest) (query.HomeAnswer, error) {
		if cluster != "there" || queue != "q" {
			return query.HomeAnswer{}, fmt.Errorf("asked for cluster %q and queue %q", cluster, queue)
		}
		return query.HomeAnswer{Sequence: 7}, nil
	}))
	must(manager.Conn().FlushTimeout(patience))
	further := as(access.MemberIntake("there"))
	if answer, err := query.NewClient(further.Conn()).Home(ctx, "there", "q", query.HomeRequest{Waiting: true}); err != nil || answer.Sequence != 7 {
		t.Errorf("the intake of a further cluster is answered %+v, %v", answer, err)
	}
	if _, err := further.Follow(ctx, bus.EventsStream, event.EventsSubject("q", "*")); err != nil {
		t.Errorf("the intake of a further cluster follows events: %v", err)
	}
	if _, err := further.Follow(ctx, bus.CapacityStream, event.GangSubject("there", "*")); err != nil {
		t.Errorf("the intake of a further cluster follows pods: %v", err)
	}
}
