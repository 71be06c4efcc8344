package apiserver_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"muster.dev/muster/pkg/kube/apiserver"
)

// TestADeadConnectionIsFoundSoon: the API server does not answer on a connection that is open, as
// when a load balancer has forgotten it. client-go's own health check takes 45 s.
func TestADeadConnectionIsFoundSoon(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	var dead atomic.Bool
	address := forward(t, server.Listener.Addr().String(), &dead)

	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	err := os.WriteFile(kubeconfig, []byte(fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": [{"name": "c", "cluster": {"server": "https://%s", "insecure-skip-tls-verify": true}}],
		"contexts": [{"name": "c", "context": {"cluster": "c"}}]}`, address)), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	config, err := apiserver.Config(kubeconfig, "test")
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	get := func() (string, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host, http.NoBody)
		if err != nil {
			return "", err
		}
		response, err := client.Do(request)
		if err != nil {
			return "", err
		}
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		return string(body), err
	}
	if protocol, err := get(); err != nil || protocol != "HTTP/2.0" {
		t.Fatalf("the first request has protocol %q, %v; want HTTP/2.0", protocol, err)
	}
	dead.Store(true)
	if _, err := get(); err == nil || ctx.Err() != nil {
		t.Errorf("a request on a dead connection returns %v, and its context %v; want an error before the end of the context", err, ctx.Err())
	}
}

// forward returns the address of a proxy that passes everything on until it is dead, when it
// keeps its connections and passes nothing.
func forward(t *testing.T, to string, dead *atomic.Bool) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	pass := func(to, from net.Conn) {
		buffer := make([]byte, 32<<10)
		for {
			n, err := from.Read(buffer)
			if err != nil {
				return
			}
			if !dead.Load() {
				_, _ = to.Write(buffer[:n])
			}
		}
	}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", to)
			if err != nil {
				_ = client.Close()
				return
			}
			t.Cleanup(func() { _ = client.Close(); _ = server.Close() })
			go pass(server, client)
			go pass(client, server)
		}
	}()
	return listener.Addr().String()
}
