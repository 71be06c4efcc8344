package queueobjects

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/policyfile/kueue"
)

// manager stands for queue-manager: it keeps what is applied, and refuses every
// request that names one of the objects in refuses.
type manager struct {
	applied []query.Applied
	refuses map[string]string // why, by name
	inUse   map[string]string // why it is not removed, by name
	busy    bool              // it refuses for the moment only
	silent  error
	asked   []string // per request: "+kind/name" and "-kind/name"
	answer  query.QueuesAnswer
}

func (m *manager) Applied(context.Context) (query.AppliedAnswer, error) {
	return query.AppliedAnswer{Objects: slices.Clone(m.applied)}, m.silent
}

func (m *manager) Queues(context.Context) (query.QueuesAnswer, error) {
	return m.answer, nil
}

func (m *manager) Configure(_ context.Context, cluster string, r query.ConfigureRequest) (query.ConfigureAnswer, error) {
	var names []string
	var refused error
	var objects []kueue.Object
	for _, manifest := range r.Apply {
		object, err := kueue.ParseOne(manifest)
		if err != nil {
			return query.ConfigureAnswer{}, err
		}
		objects = append(objects, object)
		names = append(names, "+"+object.Kind+"/"+object.Name)
		if why, refuses := m.refuses[object.Name]; refuses && object.Deleted == "" {
			refused = &query.ProblemError{Message: why, Busy: m.busy}
		}
	}
	for _, key := range r.Delete {
		names = append(names, "-"+key.Kind+"/"+key.Name)
		if why, inUse := m.inUse[key.Name]; inUse {
			refused = &query.ProblemError{Message: why}
		}
	}
	m.asked = append(m.asked, strings.Join(names, " "))
	if refused != nil {
		return query.ConfigureAnswer{}, refused
	}
	for _, object := range objects {
		m.remove(object.Key)
		m.applied = append(m.applied, query.Applied{Key: object.Key, Origin: cluster, Manifest: object.Manifest})
	}
	for _, key := range r.Delete {
		m.remove(key)
	}
	return query.ConfigureAnswer{}, nil
}

func (m *manager) remove(key kueue.Key) {
	m.applied = slices.DeleteFunc(m.applied, func(a query.Applied) bool { return a.Key == key })
}

// server stands for the API server, and merges what is written as it does.
type server struct {
	objects []*unstructured.Unstructured
	written []string
	noRight bool // to write finalizers

	unserved bool // it serves no ProvisioningRequests
	silent   error
	looked   int // how often it was asked for that
}

func (s *server) ServesRequests(context.Context) (bool, error) {
	s.looked++
	return !s.unserved && s.silent == nil, s.silent
}

func (s *server) Objects() []*unstructured.Unstructured { return s.objects }

func (s *server) WriteStatus(_ context.Context, object *unstructured.Unstructured, status map[string]any) error {
	s.written = append(s.written, object.GetKind()+"/"+object.GetName())
	object.Object["status"] = status
	return nil
}

func (s *server) WriteFinalizers(_ context.Context, object *unstructured.Unstructured, finalizers []string) (bool, error) {
	if s.noRight {
		return false, nil
	}
	if object.SetFinalizers(finalizers); isDeleted(object) && len(finalizers) == 0 {
		s.objects = slices.DeleteFunc(slices.Clone(s.objects), func(o *unstructured.Unstructured) bool { return o == object })
	}
	return true, nil
}

func (s *server) Annotate(_ context.Context, object *unstructured.Unstructured, key, value string) error {
	annotations := map[string]string{key: value}
	if value == "" {
		annotations = nil
	}
	object.SetAnnotations(annotations)
	return nil
}

func object(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	var u unstructured.Unstructured
	if err := json.Unmarshal([]byte(manifest), &u.Object); err != nil {
		t.Fatal(err)
	}
	return &u
}

const (
	flavor = `{"apiVersion":"kueue.x-k8s.io/v1beta1","kind":"ResourceFlavor","metadata":{"name":"a100","generation":1}}`
	vision = `{"apiVersion":"kueue.x-k8s.io/v1beta1","kind":"ClusterQueue","metadata":{"name":"vision","generation":1},"spec":{"namespaceSelector":{},
		"resourceGroups":[{"coveredResources":["cpu"],"flavors":[{"name":"a100","resources":[{"name":"cpu","nominalQuota":8}]}]}]}}`
	speech = `{"apiVersion":"kueue.x-k8s.io/v1beta1","kind":"ClusterQueue","metadata":{"name":"speech","generation":1},"spec":{"namespaceSelector":{}}}`
	broken = `{"apiVersion":"kueue.x-k8s.io/v1beta1","kind":"ClusterQueue","metadata":{"name":"broken","generation":1},"spec":{"namespaceSelector":{},
		"resourceGroups":[{"coveredResources":["cpu"],"flavors":[{"name":"a100","resources":[{"name":"cpu","nominalQuota":"much"}]}]}]}}`
)

func conditionOf(t *testing.T, u *unstructured.Unstructured) (status, message string) {
	t.Helper()
	conditions, _, err := unstructured.NestedSlice(u.Object, "status", "conditions")
	if err != nil || len(conditions) != 1 {
		t.Fatalf("conditions of %s: %v, error %v; want one", u.GetName(), conditions, err)
	}
	condition := conditions[0].(map[string]any)
	return condition["status"].(string), condition["message"].(string)
}

func syncOf(t *testing.T, s *server, m *manager) *Sync {
	return &Sync{Name: "east", Cluster: s, Manager: m, Requests: s, Logger: zaptest.NewLogger(t)}
}

// TestRound: one round brings queue-manager to what the cluster has.
func TestRound(t *testing.T) {
	t.Parallel()
	ofEast := func(m string) query.Applied { return appliedBy(t, "east", m) }
	cases := map[string]struct {
		objects []string
		applied []query.Applied
		refuses map[string]string
		asked   []string
	}{
		"new objects are applied together, flavors first": {
			objects: []string{vision, flavor},
			asked:   []string{"+ResourceFlavor/a100 +ClusterQueue/vision"},
		},
		"what is the same is not asked for": {
			objects: []string{vision, flavor},
			applied: []query.Applied{ofEast(flavor), ofEast(vision)},
		},
		"what the cluster has no more is deleted, queues before flavors": {
			applied: []query.Applied{ofEast(flavor), ofEast(vision)},
			asked:   []string{"-ClusterQueue/vision -ResourceFlavor/a100"},
		},
		"objects of another origin stay": {
			applied: []query.Applied{appliedBy(t, "west", flavor), appliedBy(t, "", speech)},
		},
		"an object that this cluster has, too, becomes its own": {
			objects: []string{flavor},
			applied: []query.Applied{appliedBy(t, "west", flavor)},
			asked:   []string{"+ResourceFlavor/a100"},
		},
		"after a refusal each is asked for alone": {
			objects: []string{vision, speech, flavor},
			refuses: map[string]string{"speech": "no"},
			asked: []string{
				"+ResourceFlavor/a100 +ClusterQueue/vision +ClusterQueue/speech",
				"+ResourceFlavor/a100", "+ClusterQueue/vision", "+ClusterQueue/speech",
			},
		},
		"what cannot be read keeps nothing else out": {
			objects: []string{broken, flavor},
			asked:   []string{"+ResourceFlavor/a100"},
		},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, m := &server{}, &manager{applied: test.applied, refuses: test.refuses}
			for _, manifest := range test.objects {
				s.objects = append(s.objects, object(t, manifest))
			}
			if err := syncOf(t, s, m).round(t.Context()); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(m.asked, test.asked) {
				t.Errorf("asked for %q, want %q", m.asked, test.asked)
			}
		})
	}
}

func appliedBy(t *testing.T, origin, manifest string) query.Applied {
	t.Helper()
	parsed, err := kueue.ParseOne([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	return query.Applied{Key: parsed.Key, Origin: origin, Manifest: parsed.Manifest}
}

// TestStatusOfQueues: each queue object says whether it counts and why not, and is
// written again only when that changes.
func TestStatusOfQueues(t *testing.T) {
	t.Parallel()
	s := &server{objects: []*unstructured.Unstructured{object(t, flavor), object(t, vision), object(t, speech), object(t, broken)}}
	m := &manager{refuses: map[string]string{"speech": "speech conflicts with the queues file"}}
	sync := syncOf(t, s, m)
	round := func() {
		t.Helper()
		if err := sync.round(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	round()
	for i, want := range map[int]struct{ status, message string }{ // the flavor, 0, has no status
		1: {"True", "Can submit new workloads to Muster"},
		2: {"False", "speech conflicts with the queues file"},
		3: {"False", "nominalQuota"},
	} {
		t.Run(s.objects[i].GetName(), func(t *testing.T) {
			if status, message := conditionOf(t, s.objects[i]); status != want.status || !strings.Contains(message, want.message) {
				t.Errorf("it is active: %s, %q; want %s, %q", status, message, want.status, want.message)
			}
		})
	}
	if want := []string{"ClusterQueue/vision", "ClusterQueue/speech", "ClusterQueue/broken"}; !slices.Equal(s.written, want) {
		t.Errorf("statuses written: %q, want %q", s.written, want)
	}

	s.written = nil
	round()
	if len(s.written) > 0 {
		t.Errorf("nothing has changed, yet written: %q", s.written)
	}
	m.refuses = nil
	round()
	if status, _ := conditionOf(t, s.objects[2]); status != "True" || !slices.Equal(s.written, []string{"ClusterQueue/speech"}) {
		t.Errorf("after the refusal has passed speech is active: %s, written %q; want True, and speech alone", status, s.written)
	}
}

// TestNoAnswerIsNoVerdict: while queue-manager does not answer, no status changes.
func TestNoAnswerIsNoVerdict(t *testing.T) {
	t.Parallel()
	s := &server{objects: []*unstructured.Unstructured{object(t, vision)}}
	m := &manager{silent: query.ErrNoAnswer}
	if err := syncOf(t, s, m).round(t.Context()); !errors.Is(err, query.ErrNoAnswer) {
		t.Errorf("round: %v, want ErrNoAnswer", err)
	}
	if len(s.written) > 0 || len(m.asked) > 0 {
		t.Errorf("written %q, asked for %q; want nothing", s.written, m.asked)
	}
}

// TestARefusalThatPassesIsNoVerdict: a queue-manager with too much to do shows nothing about
// an object.
func TestARefusalThatPassesIsNoVerdict(t *testing.T) {
	t.Parallel()
	s := &server{objects: []*unstructured.Unstructured{object(t, vision)}}
	m := &manager{refuses: map[string]string{"vision": "busy"}, busy: true}
	var problem *query.ProblemError
	if err := syncOf(t, s, m).round(t.Context()); !errors.As(err, &problem) || !problem.Busy {
		t.Errorf("round: %v, want the busy answer", err)
	}
	if len(s.written) > 0 {
		t.Errorf("written %q, want nothing", s.written)
	}
}

// TestActiveKeepsItsTime: the condition's time is that of its last change of status.
func TestActiveKeepsItsTime(t *testing.T) {
	t.Parallel()
	first := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	condition := active(nil, verdict{ready, readyMessage}, 1, first)
	old := map[string]any{"conditions": []any{condition}}
	if same := active(old, verdict{ready, readyMessage}, 2, first.Add(time.Hour)); same["lastTransitionTime"] != condition["lastTransitionTime"] || same["observedGeneration"] != int64(2) {
		t.Errorf("unchanged status: %v, want the time of %v and generation 2", same, condition)
	}
	if other := active(old, verdict{"Refused", "refused"}, 2, first.Add(time.Hour)); other["lastTransitionTime"] == condition["lastTransitionTime"] {
		t.Errorf("changed status: %v, want a new time", other)
	}
	answer := query.QueuesAnswer{Inactive: map[string]string{"vision": "it asks for more"}}
	for _, of := range []struct{ kind, namespace, name string }{{"ClusterQueue", "", "vision"}, {"LocalQueue", "team-a", "user-queue"}} {
		t.Run(of.name, func(t *testing.T) {
			object := &unstructured.Unstructured{Object: map[string]any{"kind": of.kind, "metadata": map[string]any{"name": of.name, "namespace": of.namespace}, "spec": map[string]any{"clusterQueue": "vision"}}}
			conditions, _, _ := unstructured.NestedSlice(statusOf(object, view{answer: answer}, first), "conditions")
			if c := conditions[0].(map[string]any); c["status"] != "False" || c["reason"] != "Inactive" || c["message"] != "it asks for more" {
				t.Errorf("the condition of an inactive %s is %v", of.kind, c)
			}
		})
	}
}

// TestUsageOfAClusterQueue: queues of one ClusterQueue add up, and its quota counts once.
func TestUsageOfAClusterQueue(t *testing.T) {
	t.Parallel()
	limits := []quota.Line{
		{FlavorResource: quota.FlavorResource{Flavor: "a100", Resource: "nvidia.com/gpu"}, Used: 12, Borrowed: 4},
		{FlavorResource: quota.FlavorResource{Flavor: "a100", Resource: "cpu"}, Used: 1500},
		{FlavorResource: quota.FlavorResource{Resource: "memory"}, Unbounded: true},
	}
	status := clusterQueue("vision", []query.Queue{
		{Name: "a", ClusterQueue: "vision", Waiting: 2, Live: 3, Quota: limits},
		{Name: "b", ClusterQueue: "vision", Waiting: 1, Live: 1, Quota: limits},
		{Name: "c", ClusterQueue: "speech", Waiting: 9, Live: 9},
	})
	got, err := json.Marshal(status)
	if err != nil {
		t.Fatal(err)
	}
	const used = `[{"name":"a100","resources":[{"borrowed":"4","name":"nvidia.com/gpu","total":"12"},{"borrowed":"0","name":"cpu","total":"1.5"}]}]`
	want := `{"admittedWorkloads":4,"flavorsReservation":` + used + `,"flavorsUsage":` + used + `,"pendingWorkloads":3,"reservingWorkloads":4}`
	if string(got) != want {
		t.Errorf("status\n%s\nwant\n%s", got, want)
	}
}

// TestLocalQueuesOfOneName: each has its own counts and those of its own ClusterQueue, and is
// active when that is.
func TestLocalQueuesOfOneName(t *testing.T) {
	t.Parallel()
	queues := []query.Queue{
		{Name: "batch", Namespaces: []string{"team-b"}, ClusterQueue: "team-b-cq", Waiting: 1},
		{Name: "user-queue", Namespaces: []string{"team-a"}, ClusterQueue: "team-a-cq", Live: 4, Inactive: "it asks for more"},
		{Name: "user-queue", Namespaces: []string{"team-b"}, ClusterQueue: "team-b-cq", Waiting: 2, Provisioning: 1, Live: 1},
	}
	for place, want := range map[string]string{
		"LocalQueue team-a user-queue": "pending 0 reserving 4 admitted 4", "LocalQueue team-b user-queue": "pending 1 reserving 2 admitted 1",
		"LocalQueue team-b batch": "pending 1 reserving 0 admitted 0", "ClusterQueue  team-a-cq": "pending 0 reserving 4 admitted 4",
		"ClusterQueue  team-b-cq": "pending 2 reserving 2 admitted 1", "ClusterQueue  idle": "pending 0 reserving 0 admitted 0",
	} {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			of := strings.Split(place, " ")
			status := localQueue(of[1], of[2], queues)
			if of[0] == "ClusterQueue" {
				status = clusterQueue(of[2], queues)
			}
			got := fmt.Sprintf("pending %v reserving %v admitted %v", status["pendingWorkloads"], status["reservingWorkloads"], status["admittedWorkloads"])
			if got != want {
				t.Errorf("the counts are %s, want %s", got, want)
			}
		})
	}
}
