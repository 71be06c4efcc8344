package queueobjects

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"muster.dev/muster/pkg/message/query"
)

// asking are a queue with a check that asks for nodes by requests of a class, and a check of
// another controller.
func asking(t *testing.T, class string) []*unstructured.Unstructured {
	return []*unstructured.Unstructured{
		object(t, `{"apiVersion":"kueue.x-k8s.io/v1beta1","kind":"AdmissionCheck","metadata":{"name":"nodes","generation":1},"spec":{"controllerName":"kueue.x-k8s.io/provisioning-request",
			"parameters":{"apiGroup":"kueue.x-k8s.io","kind":"ProvisioningRequestConfig","name":"config"}}}`),
		object(t, `{"apiVersion":"kueue.x-k8s.io/v1beta1","kind":"ProvisioningRequestConfig","metadata":{"name":"config","generation":1},"spec":{"provisioningClassName":"`+class+`"}}`),
		object(t, `{"apiVersion":"kueue.x-k8s.io/v1beta1","kind":"AdmissionCheck","metadata":{"name":"budget","generation":1},"spec":{"controllerName":"example.com/budget"}}`),
		object(t, `{"apiVersion":"kueue.x-k8s.io/v1beta1","kind":"ClusterQueue","metadata":{"name":"vision","generation":1},"spec":{"namespaceSelector":{},"admissionChecks":["budget"],
			"admissionChecksStrategy":{"admissionChecks":[{"name":"nodes"}]}}}`),
	}
}

// A check that asks for nodes says whether it is active, and why not; so does the queue, which is
// in use. The status of another controller's check is left to it.
func TestStatusOfChecks(t *testing.T) {
	t.Parallel()
	const dws = "queued-provisioning.gke.io"
	for name, c := range map[string]struct {
		class  string
		server server
		answer query.QueuesAnswer
		status string
		reason string
		queue  string // of the ClusterQueue's message
	}{
		"served":        {class: dws, status: "True", reason: "Active", queue: "Can submit new workloads to Muster"},
		"not served":    {class: dws, server: server{unserved: true}, status: "False", reason: "NotServed", queue: `AdmissionCheck "nodes" is not active: the API server of this cluster serves no ProvisioningRequests`},
		"shown as pods": {class: "placeholder-pods.muster.dev", server: server{unserved: true}, status: "True", reason: "Active", queue: "Can submit new workloads to Muster"},
		"of no use": {class: dws, answer: query.QueuesAnswer{InactiveChecks: map[string]string{"nodes": `ProvisioningRequestConfig "config" does not exist`}},
			status: "False", reason: "BadConfig", queue: "Can submit new workloads to Muster"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, m := &c.server, &manager{answer: c.answer}
			s.objects = asking(t, c.class)
			if err := syncOf(t, s, m).round(t.Context()); err != nil {
				t.Fatal(err)
			}
			conditions, _, _ := unstructured.NestedSlice(s.objects[0].Object, "status", "conditions")
			if len(conditions) != 1 || conditions[0].(map[string]any)["status"] != c.status || conditions[0].(map[string]any)["reason"] != c.reason {
				t.Errorf("the conditions are %v, want %s because of %s", conditions, c.status, c.reason)
			}
			if s.objects[2].Object["status"] != nil {
				t.Errorf("the other controller's check has the status %v", s.objects[2].Object["status"])
			}
			if status, message := conditionOf(t, s.objects[3]); status != "True" || !strings.HasPrefix(message, "Can submit new workloads to Muster") || !strings.Contains(message, c.queue) ||
				(c.queue == "Can submit new workloads to Muster") != (message == c.queue) {
				t.Errorf("the queue is active: %s, %q; want %q", status, message, c.queue)
			}
		})
	}
}

// While it is not known what the API server serves, no status changes that depends on it; all
// others do.
func TestNoAnswerOfAnAPIServerIsNoVerdict(t *testing.T) {
	t.Parallel()
	s := &server{objects: append(asking(t, "queued-provisioning.gke.io"), object(t, vision)), silent: errors.New("away")}
	s.objects[4].SetName("other")
	if err := syncOf(t, s, &manager{}).round(t.Context()); !errors.Is(err, s.silent) {
		t.Errorf("error %v, want that the API server is away", err)
	}
	for i, o := range s.objects {
		if written := o.Object["status"] != nil; written != (i == 4) {
			t.Errorf("%s %s has the status %v", o.GetKind(), o.GetName(), o.Object["status"])
		}
	}
}

// Many checks make no message that is too long for a condition.
func TestManyUnservedChecksAreNamedInShort(t *testing.T) {
	t.Parallel()
	objects := asking(t, "queued-provisioning.gke.io")
	v, queue := view{objects: []*unstructured.Unstructured{objects[1]}, unserved: true}, objects[3]
	var names []any
	for i := range 100 {
		check := objects[0].DeepCopy()
		check.SetName(fmt.Sprint("nodes-", i))
		v.objects, names = append(v.objects, check), append(names, check.GetName())
	}
	if err := unstructured.SetNestedSlice(queue.Object, names, "spec", "admissionChecks"); err != nil {
		t.Fatal(err)
	}
	got := v.unservedChecks(queue)
	if !strings.HasPrefix(got, `; AdmissionChecks "nodes-0", "nodes-1", `) || strings.Count(got, "nodes-") != mostParts || strings.Count(got, "ProvisioningRequests") != 1 {
		t.Errorf("the message is %q", got)
	}
}

// A cluster without such a check is not asked what it serves.
func TestOnlyAClusterWithACheckIsAskedWhatItServes(t *testing.T) {
	t.Parallel()
	s := &server{objects: []*unstructured.Unstructured{object(t, vision), object(t, flavor)}}
	sync := syncOf(t, s, &manager{})
	if err := sync.round(t.Context()); err != nil || s.looked > 0 {
		t.Errorf("error %v, and it is asked %d times", err, s.looked)
	}
	s.objects = append(s.objects, asking(t, "queued-provisioning.gke.io")[0])
	if err := sync.round(t.Context()); err != nil || s.looked != 1 {
		t.Errorf("with a check: error %v, and it is asked %d times; want once", err, s.looked)
	}
}

// Either version that the dispatcher makes requests of is enough; an API server that does not
// answer gives none.
func TestWhatAnAPIServerServes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		versions  string
		other     bool // it serves something else of the group
		broken    bool
		forbidden bool
		want      bool
	}{
		"v1":              {versions: "v1", want: true},
		"v1beta1 alone":   {versions: "v1beta1", want: true},
		"neither":         {},
		"something else":  {versions: "v1", other: true},
		"it is not there": {broken: true},
		"no right":        {forbidden: true, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
				served := "provisioningrequests"
				if c.other {
					served = "others"
				}
				switch {
				case c.forbidden:
					http.Error(w, "no", http.StatusForbidden)
				case c.broken:
					http.Error(w, "away", http.StatusServiceUnavailable)
				case c.versions == "" || r.URL.Path != "/apis/autoscaling.x-k8s.io/"+c.versions:
					http.NotFound(w, r)
				default:
					w.Header().Set("Content-Type", "application/json")
					fmt.Fprintf(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"autoscaling.x-k8s.io/%s","resources":[{"name":%q,"namespaced":true,"kind":"X","verbs":["get"]}]}`, c.versions, served)
				}
			})
			got, err := client.ServesRequests(t.Context())
			if got != c.want || (err != nil) != c.broken {
				t.Errorf("it serves them: %t, error %v; want %t", got, err, c.want)
			}
		})
	}
}
