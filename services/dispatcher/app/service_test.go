package app_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/local/natsserver"
	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/service"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/dispatcher/app"
)

const clusterName = "test"

// step stands where queue-manager is: it gives commands and reads statuses.
type step struct {
	t         *testing.T
	server    *natsserver.Server
	url       string
	bus       *bus.Bus
	following *bus.Following
	statuses  map[workload.ID]event.GangStatus
	sent      int
}

func newStep(t *testing.T) *step {
	t.Helper()
	return newStepAt(t, -1)
}

func newStepAt(t *testing.T, port int) *step {
	t.Helper()
	server, err := natsserver.Start(t.TempDir(), port)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	b, err := bus.Connect(t.Context(), bus.Options{URL: server.URL(), Name: "step", Logger: zaptest.NewLogger(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	if err := b.EnsureStreams(t.Context()); err != nil {
		t.Fatal(err)
	}
	following, err := b.Follow(t.Context(), bus.StatusStream, event.ClusterStatusFilter(clusterName))
	if err != nil {
		t.Fatal(err)
	}
	return &step{t: t, server: server, url: server.URL(), bus: b, following: following, statuses: map[workload.ID]event.GangStatus{}}
}

// wipe takes NATS away and brings it back without its data.
func (d *step) wipe() *step {
	d.t.Helper()
	address, err := url.Parse(d.url)
	if err != nil {
		d.t.Fatal(err)
	}
	port, err := strconv.Atoi(address.Port())
	if err != nil {
		d.t.Fatal(err)
	}
	d.server.Stop()
	return newStepAt(d.t, port)
}

func (d *step) command(c event.GangCommand) {
	d.t.Helper()
	d.sent++
	envelope, err := event.New(fmt.Sprintf("%s-%d", c.Workload, d.sent), "test", time.Now(), &c)
	if err != nil {
		d.t.Fatal(err)
	}
	if err := d.bus.Publish(d.t.Context(), event.DispatchSubject(clusterName, c.Workload), envelope); err != nil {
		d.t.Fatal(err)
	}
}

func (d *step) absent(c event.GangCommand) {
	d.t.Helper()
	c.State, c.PodSets, c.Placements, c.Manifest = event.Absent, nil, nil, nil
	d.command(c)
}

// await reads statuses until one of the workload meets the condition.
func (d *step) await(id workload.ID, what string, met func(event.GangStatus) bool) event.GangStatus {
	d.t.Helper()
	deadline := time.After(patience)
	for !met(d.statuses[id]) {
		select {
		case delivery := <-d.following.C:
			_, payload, err := delivery.Event()
			if err != nil {
				d.t.Fatal(err)
			}
			if status, ok := payload.(*event.GangStatus); ok { // a dispatcher asks for its permission, too
				d.statuses[status.Workload] = *status
			}
		case <-deadline:
			d.t.Fatalf("no such status of %s within %s: %s; last was %+v", id, patience, what, d.statuses[id])
		}
	}
	return d.statuses[id]
}

func (d *step) awaitReleased(id workload.ID) event.GangStatus {
	d.t.Helper()
	return d.await(id, "released", func(s event.GangStatus) bool { return s.Released })
}

func (d *step) awaitCreated(id workload.ID) event.GangStatus {
	d.t.Helper()
	return d.await(id, "created", func(s event.GangStatus) bool { return s.Created })
}

// run starts the service and returns when it is ready; stop ends it.
func (w *world) run(d *step) (stop func()) {
	w.t.Helper()
	return w.runWith(w.config(d))
}

// runWith is run with other settings.
func (w *world) runWith(config *app.Config) (stop func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	rt := service.NewRuntime(zaptest.NewLogger(w.t), "dispatcher")
	if err := config.Validate(); err != nil {
		w.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- app.Run(ctx, config, rt) }()
	stop = func() {
		if ctx.Err() != nil {
			return
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			w.t.Errorf("the service ended with %v", err)
		}
	}
	w.t.Cleanup(stop)
	ready, done := context.WithTimeout(ctx, patience)
	defer done()
	if err := rt.Health.WaitReady(ready); err != nil {
		w.t.Fatal(err)
	}
	return stop
}

// workers are the pods of the gang's worker group per node; each asks two CPUs.
type workers []int

// gang is the command for a RayCluster: a head (1 CPU) on the first node, and
// workers on the nodes as given.
func (w *world) gang(id workload.ID, name string, at workers) event.GangCommand {
	w.t.Helper()
	replicas := 0
	placements := []workload.Placement{{PodSet: "headgroup", Node: w.nodes[0], Pods: 1}}
	for i, pods := range at {
		replicas += pods
		placements = append(placements, workload.Placement{PodSet: "small", Node: w.nodes[i], Pods: pods})
	}
	object, err := ray.Read(fmt.Appendf(nil, rayCluster, name, replicas, replicas, replicas))
	if err != nil {
		w.t.Fatal(err)
	}
	placements[0].PodSet = object.PodSets[0].Name
	return event.GangCommand{
		Workload: id, Cluster: clusterName, Attempt: 1, Epoch: 1, State: event.Present, Queue: "q",
		Kind: "RayCluster", Namespace: w.namespace, Name: name,
		PodSets: object.PodSets, Placements: placements, Manifest: object.Manifest,
	}
}

const rayCluster = `
apiVersion: ray.io/v1
kind: RayCluster
metadata:
  name: %s
spec:
  headGroupSpec:
    rayStartParams: {}
    template:
      spec:
        containers:
        - name: ray-head
          image: rayproject/ray:2.46.0
          resources: {requests: {cpu: "1", memory: 1Gi}, limits: {cpu: "1", memory: 1Gi}}
  workerGroupSpecs:
  - groupName: small
    replicas: %d
    minReplicas: %d
    maxReplicas: %d
    rayStartParams: {}
    template:
      spec:
        containers:
        - name: ray-worker
          image: rayproject/ray:2.46.0
          resources: {requests: {cpu: "2", memory: 1Gi}, limits: {cpu: "2", memory: 1Gi}}
`

const rayJob = `
apiVersion: ray.io/v1
kind: RayJob
metadata:
  name: %s
  annotations:
    devcluster.muster.dev/job-outcome: %s
    devcluster.muster.dev/job-duration: 1s
spec:
  entrypoint: python -c 1
  shutdownAfterJobFinishes: true
  rayClusterSpec:
    headGroupSpec:
      rayStartParams: {}
      template:
        spec:
          containers:
          - name: ray-head
            image: rayproject/ray:2.46.0
            resources: {requests: {cpu: "1", memory: 1Gi}, limits: {cpu: "1", memory: 1Gi}}
`
