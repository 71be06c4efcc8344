package autoscaler

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"

	"muster.dev/muster/deploy/devcluster/internal/fleet"
)

// bench is a scaler on an API server in memory, with a clock of its own.
type bench struct {
	*scaler
	at time.Time
}

func newBench(t *testing.T, pool Pool) *bench {
	t.Helper()
	client := fake.NewClientset(&corev1.PodTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "workers"},
		Template:   corev1.PodTemplateSpec{Spec: *podOf(map[string]string{"nvidia.com/gpu": "1"}, nil)},
	})
	requests := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{Requests: "ProvisioningRequestList"})
	b := &bench{scaler: newScaler(client, requests), at: time.Unix(1_000_000, 0)}
	b.now = func() time.Time { return b.at }
	pool.Name = "l4"
	pool.Template = fleet.Group{Name: "l4-{00}", Allocatable: map[corev1.ResourceName]resource.Quantity{"nvidia.com/gpu": resource.MustParse("2")}}
	if err := Add(t.Context(), client, pool); err != nil {
		t.Fatal(err)
	}
	return b
}

// ask creates a request for that many pods.
func (b *bench) ask(t *testing.T, name string, pods int) {
	t.Helper()
	b.askOf(t, "queued-provisioning.gke.io", name, pods, nil)
}

// askOf creates a request of a class.
func (b *bench) askOf(t *testing.T, class, name string, pods int, parameters map[string]any) {
	t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "autoscaling.x-k8s.io/v1", "kind": "ProvisioningRequest",
		"metadata": map[string]any{"namespace": "default", "name": name, "uid": name, "creationTimestamp": b.at.UTC().Format(time.RFC3339)},
		"spec": map[string]any{
			"provisioningClassName": class, "parameters": parameters,
			"podSets": []any{map[string]any{"count": int64(pods), "podTemplateRef": map[string]any{"name": "workers"}}},
		},
	}}
	if _, err := b.requests.Resource(Requests).Namespace("default").Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// step lets the time pass and the scaler look.
func (b *bench) step(t *testing.T, after time.Duration) {
	t.Helper()
	b.at = b.at.Add(after)
	stored, err := b.client.CoreV1().ConfigMaps(poolsNamespace).Get(t.Context(), poolsName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	list, err := b.requests.Resource(Requests).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var objects []any
	for i := range list.Items {
		objects = append(objects, &list.Items[i])
	}
	if _, err := b.scaler.step(t.Context(), stored, objects); err != nil {
		t.Fatal(err)
	}
}

// want compares the true conditions of a request and the number of nodes.
func (b *bench) want(t *testing.T, name, conditions string, nodes int) {
	t.Helper()
	object, err := b.requests.Resource(Requests).Namespace("default").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := requestOf(object)
	if err != nil {
		t.Fatal(err)
	}
	var is []string
	for _, condition := range []string{Accepted, Provisioned, Failed, BookingExpired, CapacityRevoked} {
		if r.is(condition) {
			is = append(is, condition)
		}
	}
	list, err := b.client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{LabelSelector: PoolLabel + "=l4"})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(is, " "); got != conditions || len(list.Items) != nodes {
		t.Errorf("request %s is %q with %d nodes, want %q with %d: %s", name, got, len(list.Items), conditions, nodes, conditionsText(r))
	}
}

func conditionsText(r *request) string {
	var text strings.Builder
	for _, c := range r.Status.Conditions {
		fmt.Fprintf(&text, "%s=%s (%s) ", c.Type, c.Status, c.Message)
	}
	return text.String()
}

func (b *bench) set(t *testing.T, edit func(*Pool)) {
	t.Helper()
	if err := Set(t.Context(), b.client, "l4", edit); err != nil {
		t.Fatal(err)
	}
}

func TestNodesComeTogetherAfterTheDelay(t *testing.T) {
	t.Parallel()
	b := newBench(t, Pool{Max: 10, Stock: -1, Delay: metav1.Duration{Duration: 5 * time.Second}})
	b.ask(t, "one", 3) // two pods on a node
	b.step(t, 0)
	b.want(t, "one", "Accepted", 0)
	b.step(t, 4*time.Second)
	b.want(t, "one", "Accepted", 0)
	b.step(t, time.Second)
	b.want(t, "one", "Accepted Provisioned", 2)
	b.step(t, time.Hour)
	b.want(t, "one", "Accepted Provisioned", 2)
}

func TestARequestGetsAllOrNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, Pool{Max: 10, Stock: 3, Delay: metav1.Duration{Duration: time.Second}})
	b.ask(t, "first", 4)
	b.ask(t, "second", 4)
	b.step(t, 0)
	b.step(t, time.Second)
	b.want(t, "first", "Accepted Provisioned", 2)
	b.want(t, "second", "Accepted", 2)
	b.set(t, func(p *Pool) { p.Stock = 4 })
	b.step(t, time.Second)
	b.step(t, time.Second)
	b.want(t, "second", "Accepted Provisioned", 4)
}

func TestAPoolFailsAsOftenAsItIsSet(t *testing.T) {
	t.Parallel()
	b := newBench(t, Pool{Max: 10, Stock: -1, Fail: 1})
	b.ask(t, "first", 1)
	b.step(t, 0)
	b.want(t, "first", "Accepted Failed", 0)
	b.ask(t, "second", 1)
	b.step(t, time.Second)
	b.want(t, "second", "Accepted Provisioned", 1)
}

func TestIdleNodesGoWhenNothingKeepsThem(t *testing.T) {
	t.Parallel()
	minute := metav1.Duration{Duration: time.Minute}
	b := newBench(t, Pool{Max: 10, Stock: -1, Booking: minute, Idle: minute})
	b.ask(t, "one", 2)
	b.step(t, 0)
	b.want(t, "one", "Accepted Provisioned", 1)
	b.step(t, time.Since(b.at)+2*time.Minute) // conditions have the time of the machine
	b.want(t, "one", "Accepted Provisioned BookingExpired", 1)
	b.step(t, time.Second)
	b.step(t, time.Minute)
	b.want(t, "one", "Accepted Provisioned BookingExpired", 0)
}

func TestRevokedNodesGo(t *testing.T) {
	t.Parallel()
	b := newBench(t, Pool{Max: 10, Stock: -1})
	b.ask(t, "one", 2)
	b.step(t, 0)
	b.want(t, "one", "Accepted Provisioned", 1)
	names, err := Revoke(t.Context(), b.client, b.requests, "default", "one")
	if err != nil || len(names) != 1 {
		t.Fatalf("revoked nodes %v, %v; want one", names, err)
	}
	b.step(t, 0)
	b.want(t, "one", "Accepted Provisioned CapacityRevoked", 0)
}

func TestAPoolIsChecked(t *testing.T) {
	t.Parallel()
	good := Pool{Name: "l4", Max: 2, Template: fleet.Group{Name: "l4-{0}", Allocatable: map[corev1.ResourceName]resource.Quantity{"cpu": resource.MustParse("2")}}}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Pool){
		"max below min":    func(p *Pool) { p.Min, p.Max = 3, 2 },
		"too large":        func(p *Pool) { p.Max = maxPoolNodes + 1 },
		"negative delay":   func(p *Pool) { p.Delay.Duration = -1 },
		"one name for two": func(p *Pool) { p.Template.Name = "l4" },
		"no name":          func(p *Pool) { p.Name = "" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := good
			spoil(&pool)
			if err := pool.Validate(); err == nil {
				t.Errorf("pool %+v is accepted", pool)
			}
		})
	}
}
