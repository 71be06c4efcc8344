package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/kube/apiserver"
	"muster.dev/muster/pkg/kube/lease"
	"muster.dev/muster/pkg/service"
	"muster.dev/muster/services/capacity-watcher/internal/publish"
	"muster.dev/muster/services/capacity-watcher/internal/watch"
)

// historyWithin bounds the reading of earlier messages.
const historyWithin = 30 * time.Second

// Run watches and publishes while it holds the cluster's lease, and stands by while
// another process does, until ctx ends. It is ready once it has published everything
// that existed at the start of its term, or stands by.
func Run(ctx context.Context, config *Config, rt *service.Runtime) error {
	ctx = rt.ForKubernetes(ctx)
	if err := config.Validate(); err != nil {
		return err
	}
	ready := rt.Health.Await("everything published, or standby")
	client, owners, err := clientsFor(config.Kubeconfig)
	if err != nil {
		return err
	}
	b, err := config.NATS.Connect(ctx, "capacity-watcher/"+config.Cluster, rt.Logger)
	if err != nil {
		return err
	}
	defer b.Close()
	rt.AwaitNATS(b)
	if err := b.AwaitStreams(ctx); err != nil {
		return err
	}
	w := &watcher{config: config, rt: rt, bus: b, client: client, owners: owners, metrics: publish.NewMetrics(rt.Metrics), ready: ready}
	namespace, name := config.Lease.Split()
	contact := &lease.Contact{}
	rt.Health.Check("lease", contact.Check)
	return lease.Run(ctx, lease.Options{
		Client: client.CoordinationV1(), Namespace: namespace, Name: name, Duration: config.Lease.Duration,
		Holder: service.Holder(), Logger: rt.Logger, Guard: &w.guard, Standby: ready, Contact: contact, Failed: lease.FailedTerms(rt.Metrics).Inc,
		AtLeast: func(ctx context.Context) (int64, error) {
			before, err := w.history(ctx)
			return before.Session, err
		},
	}, w.act)
}

// watcher has the dependencies of a term.
type watcher struct {
	config  *Config
	rt      *service.Runtime
	bus     *bus.Bus
	client  kubernetes.Interface
	owners  metadata.Interface
	metrics *publish.Metrics
	ready   func()
	guard   lease.Guard
}

func (w *watcher) history(ctx context.Context) (publish.History, error) {
	ctx, cancel := context.WithTimeout(ctx, historyWithin)
	defer cancel()
	return publish.ReadHistory(ctx, w.bus, w.config.Cluster, w.rt.Logger)
}

// act watches and publishes for one term.
func (w *watcher) act(ctx context.Context, epoch int64) error {
	before, err := w.history(ctx)
	if err != nil {
		return err
	}
	parts, ctx := errgroup.WithContext(ctx)
	asked, err := bus.Asked(ctx, w.bus, w.config.Cluster, w.rt.Logger)
	if err != nil {
		return err
	}
	publisher := publish.New(publish.Options{
		Bus: w.bus, Cluster: w.config.Cluster, ResyncEvery: w.config.ResyncEvery,
		Logger: w.rt.Logger, Metrics: w.metrics, Tracer: w.rt.Tracer, Synced: w.ready, Epoch: epoch, Held: w.guard.Check,
		Asked: asked,
	}, before)
	parts.Go(func() error { return publisher.Run(ctx) })
	parts.Go(func() error {
		watch.Run(ctx, watch.Options{
			Client: w.client, Metadata: w.owners, Cluster: w.config.Cluster, NodeSelector: w.config.NodeSelector, Logger: w.rt.Logger,
		}, publisher, publisher.Complete)
		return ctx.Err()
	})
	err = parts.Wait()
	if errors.Is(err, bus.ErrReplaced) {
		return fmt.Errorf("%w: %w", lease.ErrLost, err)
	}
	return err
}

func clientsFor(kubeconfig string) (kubernetes.Interface, metadata.Interface, error) {
	config, err := apiserver.Config(kubeconfig, "muster-capacity-watcher")
	if err != nil {
		return nil, nil, err
	}
	owners, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("client for metadata at %s: %w", config.Host, err)
	}
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("client of the API server %s: %w", config.Host, err)
	}
	return client, owners, nil
}
