package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/pkg/local/devcluster"
)

// namespace has all gangs of a measurement.
const namespace = "peers"

// startTimeout bounds the start of a cluster and of a peer on it, also on a busy machine.
const startTimeout = 10 * time.Minute

// site is a dev cluster with a peer on it.
type site struct {
	cluster *devcluster.Cluster
	admin   *rest.Config
	kube    kubernetes.Interface
	dynamic dynamic.Interface
	// kind is what gangs are created as, and watched has what shows that they are admitted: by
	// spec.suspend, or by its creation.
	kind    kind
	watched schema.GroupVersionResource
	// label is the peer's label of the queue.
	label string
	// used returns the processor time that the peer has used so far.
	used func() time.Duration
	// waiting returns how many gangs wait, by the peer's own count.
	waiting func(context.Context) (int, error)
	stops   []func()
}

// opened opens a site with a peer whose queues "queue-0" and so on have the given number of
// GPUs each, for gangs of a kind.
type opened func(ctx context.Context, o options, of kind, queues, gpus int) (*site, error)

func queueName(i int) string { return fmt.Sprintf("queue-%d", i) }

// openCluster starts a dev cluster without KubeRay.
func openCluster(ctx context.Context, o options, of kind, name string) (_ *site, err error) {
	s := &site{kind: of, watched: of.resource}
	s.cluster, err = devcluster.Start(ctx, devcluster.Options{
		Name: fmt.Sprintf("peers-%s-%d", name, os.Getpid()), Fleet: o.fleet, Without: []string{devcluster.KubeRay},
	})
	if err != nil {
		return nil, err
	}
	s.stops = append(s.stops, s.cluster.Stop)
	if err := s.connect(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *site) connect() (err error) {
	if s.admin, err = clientcmd.BuildConfigFromFlags("", s.cluster.Kubeconfig); err != nil {
		return fmt.Errorf("read kubeconfig %q: %w", s.cluster.Kubeconfig, err)
	}
	s.admin.QPS = -1
	if s.kube, err = kubernetes.NewForConfig(s.admin); err != nil {
		return fmt.Errorf("client for %s: %w", s.admin.Host, err)
	}
	if s.dynamic, err = dynamic.NewForConfig(s.admin); err != nil {
		return fmt.Errorf("client for %s: %w", s.admin.Host, err)
	}
	return nil
}

func (s *site) close() {
	for i := len(s.stops) - 1; i >= 0; i-- {
		s.stops[i]()
	}
}

// create creates an object that is given as YAML.
func (s *site) create(ctx context.Context, resource schema.GroupVersionResource, in, manifest string) error {
	var object unstructured.Unstructured
	if err := yaml.Unmarshal([]byte(manifest), &object.Object); err != nil {
		return fmt.Errorf("read manifest: %w", err)
	}
	return s.createObject(ctx, resource, in, &object)
}

func (s *site) createObject(ctx context.Context, resource schema.GroupVersionResource, in string, object *unstructured.Unstructured) error {
	var client dynamic.ResourceInterface = s.dynamic.Resource(resource)
	if in != "" {
		client = s.dynamic.Resource(resource).Namespace(in)
	}
	if _, err := client.Create(ctx, object, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create %s %q: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

// writes returns how many writes the API server has answered so far, by its own count.
func (s *site) writes(ctx context.Context) (writes float64, err error) {
	text, err := s.kube.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the API server's metrics: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "apiserver_request_total{") || !isWrite(line) || ofMachine(line) {
			continue
		}
		var value float64
		if _, err := fmt.Sscan(line[strings.LastIndexByte(strings.TrimSpace(line), ' ')+1:], &value); err != nil {
			return 0, fmt.Errorf("read the API server's metrics: line %q: %w", line, err)
		}
		writes += value
	}
	return writes, nil
}

func isWrite(line string) bool {
	for _, verb := range []string{"POST", "PUT", "PATCH", "APPLY", "DELETE"} {
		if strings.Contains(line, `verb="`+verb+`"`) {
			return true
		}
	}
	return false
}

// ofMachine reports whether a count is of writes that nodes and leader elections make
// anyway, or of questions that are asked by a POST.
func ofMachine(line string) bool {
	for _, resource := range []string{"leases", "nodes", "tokenreviews", "subjectaccessreviews", "selfsubjectreviews"} {
		if strings.Contains(line, `resource="`+resource+`"`) {
			return true
		}
	}
	return false
}
