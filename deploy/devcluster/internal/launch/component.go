package launch

import (
	"context"
	"fmt"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"muster.dev/muster/deploy/devcluster/internal/autoscaler"
	"muster.dev/muster/deploy/devcluster/internal/controlplane"
	"muster.dev/muster/deploy/devcluster/internal/instance"
	"muster.dev/muster/deploy/devcluster/internal/kubelet"
	"muster.dev/muster/deploy/devcluster/internal/process"
	"muster.dev/muster/deploy/devcluster/internal/rayoperator"
	"muster.dev/muster/deploy/devcluster/internal/rayoperator/crds"
)

// RunComponent runs one component in this process until it ends. etcdURL is for
// the API server only.
func RunComponent(ctx context.Context, name string, dir instance.Dir, etcdURL string) error {
	// The supervisor decides when components end.
	signal.Ignore(syscall.SIGINT, syscall.SIGHUP)
	switch name {
	case Etcd:
		requests, err := autoscaler.Definition()
		if err != nil {
			return err
		}
		definitions, err := crds.Stored(time.Now(), requests)
		if err != nil {
			return err
		}
		return controlplane.RunEtcd(ctx, dir.File("etcd"), definitions)
	case APIServer:
		return controlplane.RunAPIServer(ctx, controlplane.APIServer{
			EtcdURL: etcdURL, ListenerFD: process.InheritedFD,
			CAFile: dir.File(caFile), CertFile: dir.File(certFile), KeyFile: dir.File(keyFile),
			TokenKeyFile: dir.File(tokenKeyFile),
		})
	}
	config, err := waitForAPIServer(ctx, dir)
	if err != nil {
		return err
	}
	switch name {
	case Scheduler:
		return controlplane.RunScheduler(ctx, dir.AdminKubeconfig(), dir.File("scheduler.yaml"))
	case ControllerManager:
		// The garbage collector looks for new kinds every 30 seconds only. It
		// must find those of KubeRay when it starts, or a RayCluster deleted in
		// that time leaves its pods running.
		if err := rayoperator.WaitServed(ctx, config); err != nil {
			return err
		}
		return controlplane.RunControllerManager(ctx, controlplane.ControllerManager{
			Kubeconfig: dir.AdminKubeconfig(), CAFile: dir.File(caFile), TokenKeyFile: dir.File(tokenKeyFile),
		})
	case Kubelet:
		return playNodes(ctx, config)
	case RayOperator:
		return rayoperator.Run(ctx, config)
	default:
		return fmt.Errorf("component %q: no such component", name)
	}
}

func waitForAPIServer(ctx context.Context, dir instance.Dir) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", dir.AdminKubeconfig())
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	probing := rest.CopyConfig(config)
	probing.Timeout = requestTimeout
	if err := controlplane.WaitHealthy(ctx, probing, "/readyz"); err != nil {
		return nil, err
	}
	return config, nil
}

// playNodes plays the nodes that there are, and the pools from which more come.
func playNodes(ctx context.Context, config *rest.Config) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return kubelet.Run(ctx, config) })
	group.Go(func() error { return autoscaler.Run(ctx, config) })
	return group.Wait()
}
