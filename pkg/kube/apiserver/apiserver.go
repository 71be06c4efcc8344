// Package apiserver has what services share as clients of an API server: how they connect,
// how they find the resource of a kind, and how they check what a user may do.
//
// It is not for a service's own requests. Each service makes these in a package of its own,
// with its own rights.
package apiserver

import (
	"fmt"
	"os"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"

	"muster.dev/muster/pkg/kube/relist"
)

// Config returns how the named client reaches the API server of the kubeconfig, or of
// the cluster in which it runs as a pod when the path is empty. Its watches list again
// after a restore of etcd.
func Config(kubeconfig, client string) (*rest.Config, error) {
	config, err := read(kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1 // the API server's priority and fairness limits the client
	config.UserAgent = client
	if err := healthChecks(); err != nil {
		return nil, err
	}
	config.Wrap(relist.Wrap)
	return config, nil
}

// healthChecks lets client-go find within 10 s, instead of 45, that the API server does not answer
// on a connection any more, unless the operator has set other times. client-go reads them from
// the environment of the process only, when it makes the first connection.
func healthChecks() error {
	for name, seconds := range map[string]string{"HTTP2_READ_IDLE_TIMEOUT_SECONDS": "5", "HTTP2_PING_TIMEOUT_SECONDS": "5"} {
		if _, set := os.LookupEnv(name); set {
			continue
		}
		if err := os.Setenv(name, seconds); err != nil {
			return fmt.Errorf("set %s to %s: %w", name, seconds, err)
		}
	}
	return nil
}

func read(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("connect without a kubeconfig as a pod of the cluster: %w", err)
		}
		return config, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig %q: %w", kubeconfig, err)
	}
	return config, nil
}

// Resources caches the resources of kinds. It may be used concurrently.
type Resources struct {
	client discovery.DiscoveryInterface
	mapper *restmapper.DeferredDiscoveryRESTMapper
}

// NewResources returns the resources that the API server serves.
func NewResources(client discovery.DiscoveryInterface) *Resources {
	return &Resources{client: client, mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client))}
}

// Of finds the resource of a kind. It looks an unknown kind up again, for its definition
// may be a moment old. Only for a kind that is certainly not served the error matches
// meta.IsNoMatchError: the list of all kinds leaves out those of an aggregated API server
// that does not answer.
func (r *Resources) Of(kind schema.GroupVersionKind) (*meta.RESTMapping, error) {
	found, err := r.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		r.mapper.Reset()
		found, err = r.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	}
	switch {
	case meta.IsNoMatchError(err):
		return nil, r.unserved(kind, err)
	case err != nil:
		return nil, fmt.Errorf("resource of %s %s: %w", kind.GroupVersion(), kind.Kind, err)
	}
	return found, nil
}

// unserved confirms with the API of the kind itself that it is not served.
func (r *Resources) unserved(kind schema.GroupVersionKind, noMatch error) error {
	served, err := r.client.ServerResourcesForGroupVersion(kind.GroupVersion().String())
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("look up whether %s serves the kind %s: %w", kind.GroupVersion(), kind.Kind, err)
	}
	if served != nil && slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Kind == kind.Kind }) {
		return fmt.Errorf("kind %s of %s was defined a moment ago, and is not usable yet", kind.Kind, kind.GroupVersion())
	}
	return fmt.Errorf("the cluster serves no kind %s of %s; install its definition first: %w", kind.Kind, kind.GroupVersion(), noMatch)
}
