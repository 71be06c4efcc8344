package app_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/queue-manager/app"
)

// TestWhatAQueueCarries: the dispatcher of a cluster gets the objects of the queue for the gangs that
// have places there, from the cluster that has them, and nothing else.
func TestWhatAQueueCarries(t *testing.T) {
	t.Parallel()
	w := newWorld(t, app.Queue{Name: "research", Namespaces: []string{"default"}, Carries: []workload.Carried{
		{Kind: workload.KindSecret, Name: "pull", From: "main"}, {Kind: workload.KindConfigMap, Name: "gone", From: "main"}, {Kind: workload.KindConfigMap, Name: "own", From: cluster},
	}})
	w.node("n1", 1)
	id := w.submit(gangOf("gang", "research", 1))
	command := w.command(id, event.Present, 1)
	if want := 2; len(command.Carries) != want {
		t.Errorf("the command carries %v, want the %d objects of another cluster", command.Carries, want)
	}
	waiting := w.submit(gangOf("waits", "research", 1))
	w.waits(waiting, workload.ReasonFit)
	content := query.CarriedObject{Type: "Opaque", Data: map[string][]byte{"key": []byte("value")}}
	content.Digest, _ = content.Sum()
	err := query.HandleCarried(w.ctx, w.bus.Conn(), "main", func(_ context.Context, wanted query.CarriedWanted) (*query.CarriedObject, error) {
		if wanted.Kind != workload.KindSecret || wanted.Namespace != "default" || wanted.Name != "pull" {
			return nil, errors.New("there is none")
		}
		return &content, nil
	})
	if err == nil {
		err = w.bus.Conn().Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	ask := query.CarryRequest{Workload: id, Attempt: 1, Kind: workload.KindSecret, Name: "pull"}
	answer, err := w.queries.Carry(w.ctx, cluster, ask)
	if err != nil || answer.From != "main" || answer.Object == nil || string(answer.Object.Data["key"]) != "value" || answer.Object.Check() != nil {
		t.Fatalf("answered %+v, %v", answer, err)
	}
	for name, c := range map[string]struct {
		cluster string
		change  func(*query.CarryRequest)
		want    string
	}{
		"a cluster where it has no places": {"west", func(*query.CarryRequest) {}, "has no places"},
		"another attempt":                  {cluster, func(r *query.CarryRequest) { r.Attempt = 2 }, "has no places"},
		"a gang that waits":                {cluster, func(r *query.CarryRequest) { r.Workload = waiting }, "has no places"},
		"no gang":                          {cluster, func(r *query.CarryRequest) { r.Workload = "" }, "names no workload"},
		"another object":                   {cluster, func(r *query.CarryRequest) { r.Name = "token" }, "carries no Secret"},
		"another kind":                     {cluster, func(r *query.CarryRequest) { r.Kind = workload.KindConfigMap }, "carries no ConfigMap"},
		"an object of the cluster itself":  {cluster, func(r *query.CarryRequest) { r.Kind, r.Name = workload.KindConfigMap, "own" }, "carries no ConfigMap"},
		"an object that is not there":      {cluster, func(r *query.CarryRequest) { r.Kind, r.Name = workload.KindConfigMap, "gone" }, `cluster "main": there is none`},
	} {
		t.Run(name, func(t *testing.T) {
			request := ask
			c.change(&request)
			answer, err := w.queries.Carry(w.ctx, c.cluster, request)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("answered %+v, %v; want a refusal with %q", answer, err, c.want)
			}
		})
	}
}
