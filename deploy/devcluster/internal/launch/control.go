package launch

import (
	"context"
	"fmt"
	"net"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"muster.dev/muster/deploy/devcluster/internal/manifest"
	"muster.dev/muster/deploy/devcluster/internal/nodes"
)

// listen opens the socket of the API server. The cluster's own components use
// the loopback address, so others must come on top of it and not in its place.
func (c *Cluster) listen() (*net.TCPListener, error) {
	listen := c.config.Listen
	if listen == "" {
		listen = "127.0.0.1:0"
	}
	address, err := net.ResolveTCPAddr("tcp4", listen)
	if err != nil {
		return nil, fmt.Errorf("address of the API server %q: %w", listen, err)
	}
	if len(address.IP) > 0 && !address.IP.IsUnspecified() && !address.IP.IsLoopback() {
		return nil, fmt.Errorf("address of the API server %q: want 127.0.0.1 or 0.0.0.0", listen)
	}
	listener, err := net.ListenTCP("tcp4", address)
	if err != nil {
		return nil, fmt.Errorf("opening the socket of the API server: %w", err)
	}
	return listener, nil
}

// startControlPlane starts all components. Those that need the API server wait
// for it by themselves, so that all of them load at the same time.
func (c *Cluster) startControlPlane(ctx context.Context) error {
	etcd, err := c.startComponent(Etcd)
	if err != nil {
		return err
	}
	url, err := etcd.WaitReady(ctx)
	if err != nil {
		return err
	}
	c.config.Progress("etcd is ready at %s", url)
	if _, err := c.startComponent(APIServer, componentFile{c.socket}, componentArg("--etcd-url="+url)); err != nil {
		return err
	}
	for _, name := range c.among(RayOperator, ControllerManager, Kubelet, Scheduler) {
		if _, err := c.startComponent(name); err != nil {
			return err
		}
	}
	return nil
}

// among returns those of the named components that this cluster has.
func (c *Cluster) among(names ...string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(c.config.Without, name) })
}

// populate fills the cluster and waits for the parts that make it usable.
func (c *Cluster) populate(ctx context.Context, config *rest.Config) error {
	fast := rest.CopyConfig(config)
	fast.ContentType = runtime.ContentTypeProtobuf
	client, err := kubernetes.NewForConfig(fast)
	if err != nil {
		return fmt.Errorf("making the client: %w", err)
	}
	if err := nodes.Create(ctx, client, c.config.Nodes); err != nil {
		return err
	}
	c.config.Progress("%d nodes are registered", len(c.config.Nodes))
	for _, name := range c.among(Kubelet, RayOperator) {
		if _, err := c.component(name).WaitReady(ctx); err != nil {
			return err
		}
		c.config.Progress("%s is ready", name)
	}
	if err := waitServiceAccount(ctx, client); err != nil {
		return err
	}
	if err := waitNodes(ctx, client, len(c.config.Nodes)); err != nil {
		return err
	}
	for _, path := range c.config.Manifests {
		count, err := manifest.Apply(ctx, config, path)
		if err != nil {
			return err
		}
		c.config.Progress("%d objects of %s are applied", count, path)
	}
	return nil
}
