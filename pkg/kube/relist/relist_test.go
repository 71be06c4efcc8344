package relist_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"muster.dev/muster/pkg/kube/relist"
)

// server answers as an API server with one kind of objects does.
type server struct {
	mu      sync.Mutex
	version uint64
	object  string        // the name of the only one
	broken  chan struct{} // ends all watches
	refuses int           // the number of refused watches
	resumed chan struct{} // gets each watch that is taken
}

// ServeHTTP implements http.Handler.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	version, object, broken := s.version, s.object, s.broken
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.URL.Query().Get("sendInitialEvents") != "":
		http.Error(w, "lists are asked for", http.StatusBadRequest)
	case r.URL.Query().Get("watch") != "": // from any version, a future one too
		// client-go would list after a short watch without events.
		_ = json.NewEncoder(w).Encode(map[string]any{"type": "BOOKMARK", "object": thing("", r.URL.Query().Get("resourceVersion"))})
		w.(http.Flusher).Flush()
		s.resumed <- struct{}{}
		select {
		case <-broken:
		case <-r.Context().Done():
		}
	default:
		_ = json.NewEncoder(w).Encode(map[string]any{
			"kind": "ThingList", "apiVersion": "example.org/v1", "metadata": map[string]any{"resourceVersion": strconv.FormatUint(version, 10)},
			"items": []any{thing(object, strconv.FormatUint(version, 10))},
		})
	}
}

func thing(name, version string) map[string]any {
	return map[string]any{"kind": "Thing", "apiVersion": "example.org/v1", "metadata": map[string]any{
		"name": name, "namespace": "default", "resourceVersion": version,
	}}
}

// RoundTrip implements http.RoundTripper.
func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	refused := r.URL.Query().Get("watch") != "" && s.refuses > 0
	if refused {
		s.refuses--
	}
	s.mu.Unlock()
	if refused {
		return nil, syscall.ECONNREFUSED
	}
	return http.DefaultTransport.RoundTrip(r)
}

// TestAWatchDoesNotGoOnInAnotherPast: after a restore of etcd a cache has the present
// objects, whether its version lies in the future or has been reached again.
func TestAWatchDoesNotGoOnInAnotherPast(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]struct {
		version uint64
		refuses int
	}{
		"an older version":                 {version: 50},
		"an older version that has passed": {version: 150, refuses: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &server{version: 100, object: "lost", broken: make(chan struct{}), resumed: make(chan struct{}, 10)}
			api := httptest.NewServer(s)
			t.Cleanup(api.Close)
			store := watched(t, s, api.URL)
			await(t, s, "the first watch")
			if !has(store, "lost") {
				t.Fatalf("the cache has %v at the beginning", store.ListKeys())
			}
			s.mu.Lock()
			broken := s.broken
			s.version, s.object, s.refuses, s.broken = after.version, "back", after.refuses, make(chan struct{})
			s.mu.Unlock()
			close(broken)
			await(t, s, "the watch after the restore")
			if !has(store, "back") || has(store, "lost") {
				t.Errorf("the cache has %v after the restore, want default/back", store.ListKeys())
			}
		})
	}
}

// TestAWatchGoesOn: a watch that lost nothing resumes without a list.
func TestAWatchGoesOn(t *testing.T) {
	t.Parallel()
	s := &server{version: 100, object: "there", broken: make(chan struct{}), resumed: make(chan struct{}, 10)}
	api := httptest.NewServer(s)
	t.Cleanup(api.Close)
	store := watched(t, s, api.URL)
	await(t, s, "the first watch")
	s.mu.Lock()
	broken := s.broken
	s.version, s.object, s.broken = 101, "another", make(chan struct{})
	s.mu.Unlock()
	close(broken)
	await(t, s, "the second watch")
	if !has(store, "there") {
		t.Errorf("the cache has %v: it was filled again, by a list", store.ListKeys())
	}
}

// asked counts the requests, and answers each of them with nothing.
type asked int

// RoundTrip implements http.RoundTripper.
func (a *asked) RoundTrip(r *http.Request) (*http.Response, error) {
	*a++
	return answers(`{"metadata":{"resourceVersion":"100"}}`).RoundTrip(r)
}

// TestOnlyLeasesAreNotListed: a watch of the Leases of a namespace resumes without a request for the
// version. One of another resource that has their name does not.
func TestOnlyLeasesAreNotListed(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]asked{
		"/apis/coordination.k8s.io/v1/namespaces/muster-system/leases":               1,
		"/clusters/east/apis/coordination.k8s.io/v1/namespaces/muster-system/leases": 1,
		"/apis/coordination.k8s.io/v1/leases":                                        2,
		"/apis/estates.example.org/v1/namespaces/muster-system/leases":               2,
		"/apis/estates.example.org/v1/leases":                                        2,
		"/apis/coordination.k8s.io/v1/namespaces/muster-system/leasecandidates":      2,
		"/api/v1/namespaces/leases/pods":                                             2,
		"/apis/coordination.k8s.io.example.org/v1/namespaces/muster-system/leases":   2,
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://api.test"+path+"?watch=true&resourceVersion=100", nil)
			if err != nil {
				t.Fatal(err)
			}
			var got asked
			if response, err := relist.Wrap(&got).RoundTrip(request); err != nil || response.StatusCode != http.StatusOK || got != want {
				t.Errorf("the watch takes %d requests, want %d: %v, %v", got, want, response, err)
			}
		})
	}
}

func watched(t *testing.T, s *server, url string) cache.Store {
	t.Helper()
	config := &rest.Config{Host: url, Transport: s}
	config.Wrap(relist.Wrap)
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	things := schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "things"}
	informer := dynamicinformer.NewFilteredDynamicInformer(client, things, metav1.NamespaceAll, 0, cache.Indexers{}, nil).Informer()
	go informer.RunWithContext(t.Context())
	if !cache.WaitForCacheSync(t.Context().Done(), informer.HasSynced) {
		t.Fatal("the cache is not filled")
	}
	return informer.GetStore()
}

func await(t *testing.T, s *server, what string) {
	t.Helper()
	select {
	case <-s.resumed:
	case <-time.After(20 * time.Second):
		t.Fatalf("%s does not come", what)
	}
}

func has(store cache.Store, name string) bool {
	_, there, err := store.GetByKey("default/" + name)
	return there && err == nil
}
