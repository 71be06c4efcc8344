package reconcile

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"k8s.io/client-go/util/workqueue"

	"muster.dev/muster/pkg/bundle"
	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/workload"
	"muster.dev/muster/services/dispatcher/internal/gang"
	"muster.dev/muster/services/dispatcher/internal/kubernetes"
)

// cluster is an API server whose answers a test sets, and the cache of it. What is
// not set is not there.
type cluster struct {
	objects  map[string]*kubernetes.Object // by name
	items    map[bundle.Identity]*kubernetes.Wrapped
	answers  map[string]error // by verb and name
	left     kubernetes.Left
	leftErr  error
	pods     []gang.Pod
	clusters []kubernetes.Object
	owned    map[string][]gang.Pod
	deleted  []string // names
}

func (c *cluster) answer(verb, name string) error { return c.answers[verb+" "+name] }

func (c *cluster) Create(_ context.Context, _, _ string, _ json.RawMessage) (string, error) {
	return "uid", nil
}

func (c *cluster) Get(_ context.Context, _, _, name string) (*kubernetes.Object, error) {
	return c.objects[name], c.answer("get", name)
}

func (c *cluster) Delete(_ context.Context, o kubernetes.Object) error {
	c.deleted = append(c.deleted, o.Name)
	return c.answer("delete", o.Name)
}

func (c *cluster) DeletePod(_ context.Context, pod gang.Pod, _ bool) error {
	c.deleted = append(c.deleted, pod.Name)
	return nil
}

func (c *cluster) Announce(context.Context, kubernetes.Object, time.Time) error { return nil }

func (c *cluster) Remaining(context.Context, workload.ID, string) (kubernetes.Left, error) {
	return c.left, c.leftErr
}

func (c *cluster) Pin(context.Context, gang.Pin) error { return nil }

func (c *cluster) OrphanedPods(context.Context, workload.ID, []gang.Pod) ([]gang.Pod, error) {
	return nil, nil
}

func (c *cluster) Release(context.Context, string, string, json.RawMessage) (bool, error) {
	return false, nil
}

func (c *cluster) CreateItem(_ context.Context, id bundle.Identity, _ json.RawMessage) (string, error) {
	if err := c.answer("create", id.Name); err != nil {
		return "", err
	}
	c.items[id] = &kubernetes.Wrapped{Object: kubernetes.Object{Kind: id.Kind, Name: id.Name, UID: "uid-" + id.Name, Workload: "w", Attempt: 1}}
	return "uid-" + id.Name, nil
}

func (c *cluster) GetItem(_ context.Context, id bundle.Identity) (*kubernetes.Wrapped, error) {
	return c.items[id], c.answer("get", id.Name)
}

func (c *cluster) DeleteItem(_ context.Context, id bundle.Identity, uid string) (bool, error) {
	if err := c.answer("delete", id.Name); err != nil {
		return false, err
	}
	if found := c.items[id]; found == nil || found.UID != uid {
		return true, nil
	}
	c.deleted = append(c.deleted, id.Name)
	delete(c.items, id)
	return false, nil
}

func (c *cluster) Allowed(context.Context, workload.Identity, bundle.Identity) (string, error) {
	return "", nil
}

func (c *cluster) Lacks(context.Context, bundle.Identity) (string, error) { return "", nil }

func (c *cluster) Object(_, _, name string) *kubernetes.Object { return c.objects[name] }
func (c *cluster) Pods(workload.ID) []gang.Pod                 { return c.pods }
func (c *cluster) Objects() []kubernetes.Object                { return nil }
func (c *cluster) Workloads() []workload.ID                    { return nil }
func (c *cluster) RayClusters(objects []string) []string       { return objects }
func (c *cluster) Made(owners []string) (pods []gang.Pod) {
	for _, uid := range owners {
		pods = append(pods, c.owned[uid]...)
	}
	return pods
}
func (c *cluster) Clusters(workload.ID) []kubernetes.Object { return c.clusters }

// played is a reconciler on a cluster that is played, with a clock that a test sets.
type played struct {
	*Reconciler
	cluster *cluster
	clock   time.Time
	said    event.GangStatus // last
}

func play(t *testing.T) *played {
	t.Helper()
	p := &played{
		cluster: &cluster{objects: map[string]*kubernetes.Object{}, items: map[bundle.Identity]*kubernetes.Wrapped{}, answers: map[string]error{}, owned: map[string][]gang.Pod{}},
		clock:   time.Unix(1_700_000_000, 0),
	}
	report := func(_ context.Context, status event.GangStatus, _ time.Duration) error {
		p.said = status
		return nil
	}
	schedule := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[workload.ID]())
	t.Cleanup(schedule.ShutDown)
	p.Reconciler = NewSteps(p.cluster, report, map[workload.ID]event.GangStatus{}, zap.NewNop(), NewMetrics(prometheus.NewRegistry()),
		schedule, func() time.Time { return p.clock })
	p.SetCache(p.cluster)
	return p
}

// see looks at the workload so many times.
func (p *played) see(t *testing.T, times int) (err error) {
	t.Helper()
	for range times {
		_, err = p.look(t.Context(), "w")
	}
	return err
}
