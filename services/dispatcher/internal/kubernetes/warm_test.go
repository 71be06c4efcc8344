package kubernetes

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"muster.dev/muster/pkg/spec/workload"
)

// Warm creates each kind in a dry run, and takes a refusal for an answer. The client notes each new
// connection once: the second question goes over the first connection, and one after the API
// server has closed it over another.
func TestWarmIsADryRunAndConnectionsAreNoted(t *testing.T) {
	t.Parallel()
	asked, status := make(chan string, 100), atomic.Int32{}
	status.Store(http.StatusForbidden)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Method + " " + r.URL.RequestURI()
		w.WriteHeader(int(status.Load()))
	}))
	defer server.Close()
	c := clientOf(t, server.URL)
	if err := c.Warm(t.Context(), "team"); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{workload.KindRayCluster, workload.KindRayJob} {
		want := "POST /apis/ray.io/v1/namespaces/team/" + resources[kind].Resource + "?dryRun=All"
		if got := <-asked; got != want {
			t.Errorf("it asked %q, want %q", got, want)
		}
	}
	noted := func() bool {
		select {
		case <-c.Connected():
			return true
		default:
			return false
		}
	}
	if !noted() || noted() {
		t.Error("the first connection is not noted once")
	}
	if err := c.Warm(t.Context(), "team"); err != nil || noted() {
		t.Errorf("over the same connection: %v, or another one is noted", err)
	}
	server.CloseClientConnections()
	status.Store(http.StatusServiceUnavailable)
	for range 10 { // the end of the first connection may show only when it is used
		if err := c.Warm(t.Context(), "team"); err == nil {
			t.Fatal("an API server that is not ready counts as warmed")
		}
		if noted() {
			return
		}
	}
	t.Error("the connection after the first has ended is not noted")
}

// clientOf returns a client of a server that answers the test.
func clientOf(t *testing.T, url string) *Client {
	t.Helper()
	file := t.TempDir() + "/kubeconfig"
	config := api.NewConfig()
	config.Clusters["c"] = &api.Cluster{Server: url}
	config.Contexts["c"] = &api.Context{Cluster: "c"}
	config.CurrentContext = "c"
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	c, err := connect(file, "c", func(next http.RoundTripper) http.RoundTripper { return next }, newLimiter(prometheus.NewRegistry()))
	if err != nil {
		t.Fatal(err)
	}
	return c
}
