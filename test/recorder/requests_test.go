package recorder

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

func requestObject(name, workload string, pods int64, conditions ...string) *unstructured.Unstructured {
	all := []any{}
	for _, c := range conditions {
		all = append(all, map[string]any{"type": c, "status": "True"})
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"podSets": []any{map[string]any{"count": pods}}}, "status": map[string]any{"conditions": all},
	}}
	u.SetName(name)
	u.SetUID(types.UID("uid-" + name))
	u.SetLabels(map[string]string{workloadLabel: workload})
	return u
}

func nodeFor(name, request string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{}}}
	if request != "" {
		n.Labels[nodeOfRequest] = "uid-" + request
	}
	return n
}

func podWith(name, workload, attempt, request string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{workloadLabel: workload, attemptLabel: attempt}, Annotations: map[string]string{consumedRequest: request}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

// TestTheRecorderOfRequestsBites: each life of a gang of two pods that lack places, with what
// is to be found in it.
func TestTheRecorderOfRequestsBites(t *testing.T) {
	t.Parallel()
	asks := func(r *Requests) {
		r.request(watch.Added, requestObject("one", "g", 2))
	}
	provisioned := func(r *Requests) {
		r.node(watch.Added, nodeFor("a", "one"))
		r.node(watch.Added, nodeFor("b", "one"))
		r.request(watch.Modified, requestObject("one", "g", 2, "Provisioned"))
	}
	runs := func(r *Requests) {
		r.pod(watch.Added, podWith("p", "g", "1", "one"))
		r.pod(watch.Added, podWith("q", "g", "1", "one"))
	}
	ends := func(r *Requests) {
		r.request(watch.Deleted, requestObject("one", "g", 2, "Provisioned"))
		r.Ended("g")
	}
	for name, c := range map[string]struct {
		steps []func(*Requests)
		want  string // empty for nothing
	}{
		"good":                  {[]func(*Requests){asks, provisioned, runs, ends}, ""},
		"of no workload":        {[]func(*Requests){func(r *Requests) { r.request(watch.Added, requestObject("x", "h", 2)) }}, "which was never submitted"},
		"for a part":            {[]func(*Requests){func(r *Requests) { r.request(watch.Added, requestObject("one", "g", 1)) }}, "asks for 1 pods"},
		"for more":              {[]func(*Requests){func(r *Requests) { r.request(watch.Added, requestObject("one", "g", 3)) }}, "asks for 3 pods"},
		"two at once":           {[]func(*Requests){asks, func(r *Requests) { r.request(watch.Added, requestObject("two", "g", 2)) }}, "while request one of the same workload is there"},
		"one after the other":   {[]func(*Requests){asks, func(r *Requests) { r.request(watch.Deleted, requestObject("one", "g", 2, "Failed")) }, func(r *Requests) { r.request(watch.Added, requestObject("two", "g", 2)) }}, ""},
		"a name twice":          {[]func(*Requests){asks, ends, func(r *Requests) { u := requestObject("one", "g", 2); u.SetUID("again"); r.request(watch.Added, u) }}, "made twice"},
		"a part of the nodes":   {[]func(*Requests){asks, func(r *Requests) { r.node(watch.Added, nodeFor("a", "one")) }, func(r *Requests) { r.request(watch.Modified, requestObject("one", "g", 2, "Provisioned")) }}, "1 nodes came"},
		"nodes of no condition": {[]func(*Requests){asks, func(r *Requests) { r.node(watch.Added, nodeFor("a", "one")) }, ends}, "1 nodes came"},
		"a pod of no workload":  {[]func(*Requests){func(r *Requests) { r.pod(watch.Added, podWith("p", "x", "1", "one")) }}, "runs, and the workload was never submitted"},
		"a node of nothing":     {[]func(*Requests){func(r *Requests) { r.node(watch.Added, nodeFor("a", "gone")) }}, "which was never seen"},
		"never used":            {[]func(*Requests){asks, provisioned, ends}, "never ran whole with it"},
		"used in part":          {[]func(*Requests){asks, provisioned, func(r *Requests) { r.pod(watch.Added, podWith("p", "g", "1", "one")) }, ends}, "never ran whole with it"},
		"harmed":                {[]func(*Requests){asks, provisioned, func(r *Requests) { r.Harmed("g") }, ends}, ""},
		"a node that replaces":  {[]func(*Requests){asks, provisioned, runs, func(r *Requests) { r.node(watch.Deleted, nodeFor("a", "one")); r.node(watch.Added, nodeFor("c", "")) }, ends}, ""},
		"the request of others": {[]func(*Requests){asks, provisioned, func(r *Requests) {
			r.Submitted("h", 1, 0)
			r.pod(watch.Added, podWith("p", "h", "1", "one"))
		}}, "which is not its own"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRequests()
			r.Submitted("g", 2, 2)
			for _, step := range c.steps {
				step(r)
			}
			found := strings.Join(r.Report().Violations, "; ")
			if c.want == "" && found != "" || !strings.Contains(found, c.want) {
				t.Errorf("found %q, want %q", found, c.want)
			}
		})
	}
}

func TestWhatIsLeftIsNamed(t *testing.T) {
	t.Parallel()
	r := newRequests()
	r.Submitted("g", 2, 2)
	r.request(watch.Added, requestObject("one", "g", 2))
	r.node(watch.Added, nodeFor("a", "one"))
	if got := strings.Join(r.Left(), ", "); got != "node a, request one" {
		t.Errorf("left are %s", got)
	}
	r.allRequests(nil)
	r.node(watch.Deleted, nodeFor("a", "one"))
	if got := r.Left(); len(got) != 0 {
		t.Errorf("left are %v, want nothing", got)
	}
}
