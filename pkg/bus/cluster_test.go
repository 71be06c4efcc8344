package bus_test

import (
	"fmt"
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// startServers starts one server, or a cluster of several, with a store of the given size each.
func startServers(t *testing.T, count int, store int64) (all []*server.Server) {
	t.Helper()
	routes := freeRoutes(t, count)
	for i, route := range routes {
		options := &server.Options{
			ServerName: fmt.Sprintf("server-%d", i), Host: "127.0.0.1", Port: -1,
			JetStream: true, StoreDir: t.TempDir(), JetStreamMaxStore: store, NoSigs: true, NoLog: true,
		}
		if count > 1 {
			var port int
			if _, err := fmt.Sscan(route.Port(), &port); err != nil {
				t.Fatal(err)
			}
			options.Cluster, options.Routes = server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: port}, routes
		}
		s, err := server.NewServer(options)
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
		all = append(all, s)
	}
	for _, s := range all {
		if !s.ReadyForConnections(10 * time.Second) {
			t.Fatalf("server %s takes no connections", s.Name())
		}
	}
	return all
}

// freeRoutes chooses the addresses at which servers of a cluster find each other.
func freeRoutes(t *testing.T, count int) (routes []*url.URL) {
	t.Helper()
	for range count {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = listener.Close() }() // not before all are chosen
		routes = append(routes, &url.URL{Scheme: "nats", Host: listener.Addr().String()})
	}
	return routes
}
