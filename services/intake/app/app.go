// Package app composes intake from its parts. It is not the process, which is
// the main package or `muster dev`.
package app

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/ray"
	"muster.dev/muster/pkg/service"
	"muster.dev/muster/pkg/tracing"
	"muster.dev/muster/pkg/workload"
	"muster.dev/muster/services/intake/internal/submission"
)

// Config is intake's settings.
type Config struct {
	NATSURL         string
	NATSCredentials string
	NATSTLS         bus.TLS
	// NATSReplicas is on how many servers of a NATS cluster a stream is kept that
	// this service makes; 0 is one.
	NATSReplicas int
	// KubeRayFile says how the clusters' KubeRay operator is set up; see
	// ray.Operator for its format.
	KubeRayFile string
	// Operator is what the file says; as shipped when there is none. Validate sets
	// it.
	Operator ray.Operator
	// Cluster turns the door to Kubernetes on: it is what Muster calls the cluster.
	Cluster string
	// Kubeconfig is a path; empty means the pod's own service account.
	Kubeconfig string
	// KubeNamespaces are the namespaces whose objects come through the door,
	// separated by commas; empty for all.
	KubeNamespaces string
	// DefaultQueue takes AppWrappers without a queue label.
	DefaultQueue string
	// HTTP is the door for those without NATS; off without an address.
	HTTP HTTPConfig
}

// Register implements service.Config.
func (c *Config) Register(flags *flag.FlagSet) {
	flags.StringVar(&c.NATSURL, "nats-url", "nats://127.0.0.1:4222", "`URL` of the NATS server")
	flags.StringVar(&c.NATSCredentials, "nats-credentials", "", "`file` with NATS credentials: .creds, or the seed of an nkey")
	c.NATSTLS.Register(flags)
	flags.IntVar(&c.NATSReplicas, "nats-replicas", 0, "on how many servers of a NATS cluster a stream is kept that is made here; the same for all services")
	flags.StringVar(&c.KubeRayFile, "kuberay", "", "YAML `file` that says how the KubeRay operator is set up; without it: 1.6.2 as shipped")
	flags.StringVar(&c.Cluster, "cluster", "", "`name` in Muster of the cluster whose AppWrappers and held Ray objects are taken; without it none are")
	flags.StringVar(&c.Kubeconfig, "kubeconfig", "", "kubeconfig `file` of that cluster; without it the pod's own service account")
	flags.StringVar(&c.KubeNamespaces, "kube-namespaces", "", "`namespaces`, separated by commas, whose objects are taken; empty for all")
	c.HTTP.register(flags)
	flags.StringVar(&c.DefaultQueue, "default-queue", "default", "`queue` of AppWrappers without a queue label")
}

// Validate implements service.Config. It reads the file that the settings name.
func (c *Config) Validate() error {
	c.Operator = ray.Shipped()
	if c.KubeRayFile != "" {
		content, err := os.ReadFile(c.KubeRayFile)
		if err != nil {
			return fmt.Errorf("kuberay: %w", err)
		}
		if c.Operator, err = ray.ReadOperator(content); err != nil {
			return fmt.Errorf("kuberay: %s: %w", c.KubeRayFile, err)
		}
	}
	var faults []error
	if c.NATSURL == "" {
		faults = append(faults, errors.New("nats-url: is missing"))
	}
	faults = append(faults, c.NATSTLS.Validate())
	if !bus.ValidReplicas(c.NATSReplicas) {
		faults = append(faults, fmt.Errorf("nats-replicas: %d: want 0 to %d", c.NATSReplicas, bus.MaxReplicas))
	}
	if c.Cluster != "" && !workload.ValidName(c.Cluster) {
		faults = append(faults, fmt.Errorf("cluster: %q: want a name of lower-case letters, digits and dashes", c.Cluster))
	}
	if c.Cluster == "" && c.Kubeconfig != "" {
		faults = append(faults, errors.New("cluster: is missing; with kubeconfig the door to Kubernetes needs the cluster's name in Muster"))
	}
	if c.DefaultQueue == "" {
		c.DefaultQueue = "default"
	}
	faults = append(faults, c.HTTP.validate())
	return errors.Join(faults...)
}

const (
	// underWay bounds messages whose results are published but not yet stored.
	underWay = 1024
	// retryAfter is the pause before a submission whose result could not be
	// published comes again.
	retryAfter = 500 * time.Millisecond
	// storeTimeout bounds the wait for the server to store a result.
	storeTimeout = 10 * time.Second
	// stopTimeout bounds the wait for all results together at the end: what is
	// not settled then comes again.
	stopTimeout = 2 * time.Second
)

// Run runs intake until ctx ends.
func Run(ctx context.Context, config *Config, runtime *service.Runtime) error {
	ctx = runtime.ForKubernetes(ctx)
	ready := runtime.Health.Await("subscribed")
	b, err := bus.Connect(ctx, bus.Options{
		URL: config.NATSURL, Name: "intake", Logger: runtime.Logger, CredentialsFile: config.NATSCredentials,
		TLS: config.NATSTLS, Replicas: config.NATSReplicas, Patient: true,
	})
	if err != nil {
		return err
	}
	defer b.Close()
	runtime.Health.Check("nats", b.Ready)
	if err := b.AwaitStreams(ctx); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	if config.Cluster != "" {
		group.Go(func() error { return runDoor(ctx, config, b, runtime) })
	}
	if config.HTTP.Address != "" {
		if err := serveHTTP(ctx, group, config, b, runtime); err != nil {
			return err
		}
	}
	deliveries, err := b.Work(ctx, bus.Work{Stream: bus.SubmitStream, Durable: bus.IntakeDurable})
	if err != nil {
		return err
	}
	in := &intake{bus: b, tracer: runtime.Tracer, operator: config.Operator, logger: runtime.Logger, results: newResults(runtime.Metrics), published: make(chan underway, underWay)}
	ready()
	waiting, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	context.AfterFunc(ctx, func() { time.AfterFunc(stopTimeout, giveUp) })
	settled := make(chan struct{})
	go func() {
		defer close(settled)
		in.settle(waiting)
	}()
	for d := range deliveries {
		in.take(d)
	}
	close(in.published)
	<-settled
	if err := group.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}

// newResults registers the metric of what became of submissions.
func newResults(registry *prometheus.Registry) *prometheus.CounterVec {
	results := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "muster_intake_submissions_total", Help: "Submissions read, by what became of them.",
	}, []string{"result"})
	registry.MustRegister(results)
	return results
}

type intake struct {
	bus       *bus.Bus
	tracer    tracing.Tracer
	operator  ray.Operator
	logger    *zap.Logger
	results   *prometheus.CounterVec
	published chan underway
}

// underway is a message whose results are on their way to the server.
type underway struct {
	delivery bus.Delivery
	said     []said
}

// said is the result of one submission.
type said struct {
	result submission.Result
	stored bus.Published
	span   tracing.Span
}

// take reads a message and publishes the results without waiting for the server:
// they are stored in the order of the submissions.
func (in *intake) take(d bus.Delivery) {
	submitter := workload.DoorNATS
	if _, user := bus.SubmittedBy(d.Subject); user != "" {
		submitter += "/" + user
	}
	u := underway{delivery: d}
	message := submission.Message{Subject: d.Subject, Submitter: submitter, Headers: d.Headers, Data: d.Data, Sequence: d.Sequence, Stored: d.Stored}
	for _, one := range submission.Split(message) {
		s, err := in.say(one)
		if err != nil {
			for _, before := range u.said {
				before.span.End(err)
			}
			in.retry(d, err)
			return
		}
		u.said = append(u.said, s)
	}
	in.published <- u
}

// say reads a submission and publishes what is to be said of it.
func (in *intake) say(message submission.Message) (said, error) {
	result, err := submission.Read(in.operator, message)
	if err != nil {
		return said{}, err
	}
	span := in.tracer.Begin(result.Workload, result.Traceparent, "submission read", "muster.queue", result.Queue)
	result.Event.Traceparent = span.Traceparent()
	stored, err := in.bus.PublishAsync(result.Subject, result.Event)
	if errors.Is(err, bus.ErrTooLarge) {
		if result, err = submission.Reject(message, err); err == nil {
			stored, err = in.bus.PublishAsync(result.Subject, result.Event)
		}
	}
	if err != nil {
		span.End(err)
	}
	return said{result, stored, span}, err
}

// settle acknowledges messages whose results the server has. When waiting ends it
// gives the others back.
func (in *intake) settle(waiting context.Context) {
	for u := range in.published {
		ctx, cancel := context.WithTimeout(waiting, storeTimeout)
		var failed error
		for _, s := range u.said {
			err := s.stored.Wait(ctx)
			s.span.End(err)
			failed = errors.Join(failed, err)
		}
		cancel()
		if failed != nil {
			in.retry(u.delivery, failed)
			continue
		}
		u.delivery.Ack()
		for _, s := range u.said {
			in.count(s.result, u.delivery.Subject)
		}
	}
}

// count counts and logs what became of a submission.
func (in *intake) count(result submission.Result, subject string) {
	if result.Rejection != nil {
		in.results.WithLabelValues("rejected").Inc()
		in.logger.Debug("submission rejected", zap.String("workload", string(result.Workload)),
			zap.String("subject", subject), zap.String("reason", result.Rejection.Message))
		return
	}
	in.results.WithLabelValues("accepted").Inc()
	in.logger.Debug("submission accepted", zap.String("workload", string(result.Workload)), zap.String("subject", subject))
}

func (in *intake) retry(d bus.Delivery, cause error) {
	in.results.WithLabelValues("retried").Inc()
	in.logger.Warn("submission will be read again", zap.String("subject", d.Subject), zap.Uint64("sequence", d.Sequence), zap.Error(cause))
	d.Retry(retryAfter)
}
