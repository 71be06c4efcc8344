// Package app composes capacity-watcher: watches on one cluster's nodes and
// pods that fill a picture, which is published on the bus.
package app

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/service"
	"muster.dev/muster/services/capacity-watcher/internal/publish"
	"muster.dev/muster/services/capacity-watcher/internal/watch"
)

// historyWithin bounds the reading of what was published before.
const historyWithin = 30 * time.Second

// Run watches and publishes until ctx ends. It is ready once everything that
// existed at the start has been published.
func Run(ctx context.Context, config *Config, rt *service.Runtime) error {
	if err := config.Validate(); err != nil {
		return err
	}
	published := rt.Health.Await("full picture published")
	client, err := clientFor(config.Kubeconfig)
	if err != nil {
		return err
	}
	b, err := bus.Connect(ctx, bus.Options{
		URL: config.NATSURL, Name: "capacity-watcher/" + config.Cluster, Logger: rt.Logger, CredentialsFile: config.NATSCredentials,
		Replicas: config.NATSReplicas,
	})
	if err != nil {
		return err
	}
	defer b.Close()
	rt.Health.Check("nats", b.Ready)
	if err := b.EnsureStreams(ctx); err != nil {
		return err
	}
	reading, cancel := context.WithTimeout(ctx, historyWithin)
	before, err := publish.ReadHistory(reading, b, config.Cluster, rt.Logger)
	cancel()
	if err != nil {
		return err
	}
	publisher := publish.New(publish.Options{
		Bus: b, Cluster: config.Cluster, ResyncEvery: config.ResyncEvery,
		Logger: rt.Logger, Metrics: publish.NewMetrics(rt.Metrics), Synced: published,
	}, before, time.Now())
	var parts sync.WaitGroup
	parts.Go(func() { publisher.Run(ctx) })
	parts.Go(func() {
		watch.Run(ctx, watch.Options{
			Client: client, Cluster: config.Cluster, NodeSelector: config.NodeSelector, Logger: rt.Logger,
		}, publisher, publisher.Complete)
	})
	parts.Wait()
	return ctx.Err()
}

func clientFor(kubeconfig string) (kubernetes.Interface, error) {
	config, err := restConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1 // the API server protects itself
	config.UserAgent = "muster-capacity-watcher"
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client of the API server %s: %w", config.Host, err)
	}
	return client, nil
}

func restConfig(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("no kubeconfig is named, and this is no pod of a cluster: %w", err)
		}
		return config, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig %q: %w", kubeconfig, err)
	}
	return config, nil
}
