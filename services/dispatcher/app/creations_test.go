package app_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// creations counts the RayClusters that come into being in the namespace, by name.
type creations struct {
	mu   sync.Mutex
	seen map[string]map[string]bool // UIDs
}

func (w *world) countCreations() *creations {
	w.t.Helper()
	c := &creations{seen: map[string]map[string]bool{}}
	watch, err := w.objects.Resource(resource("RayCluster")).Namespace(w.namespace).Watch(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(watch.Stop)
	go func() {
		for change := range watch.ResultChan() {
			if object, ok := change.Object.(*unstructured.Unstructured); ok {
				c.mu.Lock()
				if c.seen[object.GetName()] == nil {
					c.seen[object.GetName()] = map[string]bool{}
				}
				c.seen[object.GetName()][string(object.GetUID())] = true
				c.mu.Unlock()
			}
		}
	}()
	return c
}

func (c *creations) of(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.seen[name])
}

// holdingProxy is an API server whose answers to creations are withheld: the
// request itself waits until it is let go.
type holdingProxy struct {
	server  *httptest.Server
	arrived chan struct{}
	letGo   chan struct{}
}

func (w *world) holdCreations(kubeconfig string) (*holdingProxy, string) {
	w.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		w.t.Fatal(err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		w.t.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		w.t.Fatal(err)
	}
	p := &holdingProxy{arrived: make(chan struct{}, 1), letGo: make(chan struct{})}
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: transport, FlushInterval: -1,
	}
	p.server = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/rayclusters") && !r.URL.Query().Has("dryRun") {
			select {
			case p.arrived <- struct{}{}:
			default:
			}
			<-p.letGo
			// The client has given up; the request is on the wire all the same.
			r = r.WithContext(context.WithoutCancel(r.Context()))
		}
		forward.ServeHTTP(out, r)
	}))
	w.t.Cleanup(p.server.Close)
	through := clientcmdapi.NewConfig()
	through.Clusters["proxy"] = &clientcmdapi.Cluster{Server: p.server.URL}
	through.Contexts["proxy"] = &clientcmdapi.Context{Cluster: "proxy"}
	through.CurrentContext = "proxy"
	file := filepath.Join(w.t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*through, file); err != nil {
		w.t.Fatal(err)
	}
	return p, file
}
