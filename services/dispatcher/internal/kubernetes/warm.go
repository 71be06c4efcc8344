package kubernetes

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptrace"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"muster.dev/muster/pkg/kube/apiserver"
	"muster.dev/muster/pkg/spec/workload"
)

// connections notes that a new connection to the API server was made: behind it may be a process
// that has just begun.
type connections struct{ news chan struct{} }

func newConnections() connections { return connections{make(chan struct{}, 1)} }

func (c connections) note() {
	select {
	case c.news <- struct{}{}:
	default: // it is noted already
	}
}

// Wrap returns a transport whose new connections are noted.
func (c connections) Wrap(next http.RoundTripper) http.RoundTripper { return noted{c, next} }

type noted struct {
	connections
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (n noted) RoundTrip(r *http.Request) (*http.Response, error) {
	trace := &httptrace.ClientTrace{GotConn: func(connection httptrace.GotConnInfo) {
		if !connection.Reused {
			n.note()
		}
	}}
	return n.next.RoundTrip(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
}

// Connected delivers when a new connection to the API server was made since it last did.
func (c *Client) Connected() <-chan struct{} { return c.made.news }

// warmed are the kinds that Warm prepares: those that users create, and admission policies concern.
var warmed = [...]string{workload.KindRayCluster, workload.KindRayJob}

// Warm has the API server read the schemas of Ray objects for its policies. An API server that has
// begun does so when the first object of a kind is created, which then takes seconds. Here that is
// an object in a dry run, in a namespace where the dispatcher may create some. Whether the API
// server would accept it does not matter.
func (c *Client) Warm(ctx context.Context, namespace string) error {
	for _, kind := range warmed {
		resource := resources[kind]
		probe := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": resource.GroupVersion().String(), "kind": kind, "metadata": map[string]any{"name": "muster-probe"}, "spec": map[string]any{},
		}}
		_, err := c.objects.Resource(resource).Namespace(namespace).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if !apiserver.Decided(err) {
			return fmt.Errorf("create %s in namespace %s in a dry run: %w", kind, namespace, err)
		}
	}
	return nil
}
