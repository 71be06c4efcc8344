// Package controlplane runs the Kubernetes control plane of one instance: etcd,
// the API server, the scheduler and the controller manager. Each Run function
// runs one of them in a process of its own, because all of them keep feature
// gates, flags and loggers in globals.
package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/embed"

	"muster.dev/muster/deploy/devcluster/internal/process"
)

// A single member elects itself, so its timeouts only delay the start.
const (
	etcdHeartbeatMillis = 20
	etcdElectionMillis  = 100
)

// etcdQuota is the size at which etcd refuses writes. A day of churn of 1,000
// nodes stays far below it.
const etcdQuota = 8 << 30

// RunEtcd runs etcd on a free loopback port with its data in dir, stores seed in
// it when it is new, and reports its URL. It ends with ctx.
func RunEtcd(ctx context.Context, dir string, seed map[string][]byte) error {
	// Port 0: the kernel chooses, so two instances never collide.
	anyPort := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	cfg := embed.NewConfig()
	cfg.Name = "devcluster"
	cfg.Dir = dir
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = anyPort, anyPort
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = anyPort, anyPort
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.TickMs, cfg.ElectionMs = etcdHeartbeatMillis, etcdElectionMillis
	cfg.UnsafeNoFsync = true // Nothing of a dev cluster survives its end.
	cfg.QuotaBackendBytes = etcdQuota
	cfg.EnableGRPCGateway = false
	cfg.LogLevel = "warn"
	cfg.LogOutputs = []string{"stderr"}

	if _, err := os.Stat(dir); err == nil {
		seed = nil
	}
	server, err := embed.StartEtcd(cfg)
	if err != nil {
		return fmt.Errorf("starting etcd in %q: %w", dir, err)
	}
	defer server.Close()
	select {
	case <-server.Server.ReadyNotify():
	case err := <-server.Err():
		return fmt.Errorf("running etcd: %w", err)
	case <-server.Server.StopNotify():
		return errors.New("running etcd: it stopped while starting")
	case <-ctx.Done():
		return nil
	}
	for key, value := range seed {
		put := &etcdserverpb.PutRequest{Key: []byte(key), Value: value}
		if _, err := server.Server.Put(ctx, put); err != nil {
			return fmt.Errorf("storing %q in etcd: %w", key, err)
		}
	}
	if err := process.ReportReady("http://" + server.Clients[0].Addr().String()); err != nil {
		return err
	}
	select {
	case err := <-server.Err():
		return fmt.Errorf("running etcd: %w", err)
	case <-ctx.Done():
		return nil
	}
}
