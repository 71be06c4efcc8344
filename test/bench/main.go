// Command bench measures Muster on real parts against a named baseline in the
// same run: creating the same objects in the same kind of cluster by hand; and
// the decision alone, in memory, against a naive scan of all that wait. What it
// prints goes into docs/performance.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/pprof"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	"muster.dev/muster/pkg/local/devcluster"
	"muster.dev/muster/pkg/local/postgres"
	"muster.dev/muster/pkg/service/logging"
	"muster.dev/muster/test/bench/sections"
	"muster.dev/muster/test/stack"
)

func main() {
	if settings := os.Getenv(childVariable); settings != "" {
		os.Exit(runChild(settings))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var o options
	flag.IntVar(&o.idle, "idle", 200, "gangs submitted one after the other")
	flag.IntVar(&o.burst, "burst", 1000, "gangs submitted at once")
	flag.IntVar(&o.rounds, "rounds", 5, "how often the burst is measured")
	flag.IntVar(&o.large, "large", 512, "pods of one large gang")
	flag.IntVar(&o.takeOvers, "takeovers", 10, "how often each service is killed")
	flag.StringVar(&o.fleet, "fleet", "fleet-1000", "fleet of the dev cluster")
	flag.StringVar(&o.section, "section", "all", "which tables are taken, `names` with commas in between: "+sections.Names(tables()))
	profile := flag.String("cpuprofile", "", "write a CPU profile of this process, services included, to a `file`")
	flag.Parse()
	if *profile != "" {
		stop, err := startProfile(*profile)
		if err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		defer stop()
	}
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// startProfile profiles until the returned function is called.
func startProfile(path string) (stop func(), err error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("create profile: %w", err)
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, fmt.Errorf("profile to %q: %w", path, err)
	}
	return func() {
		pprof.StopCPUProfile()
		_ = file.Close()
	}, nil
}

type options struct {
	idle, burst, rounds, large int
	takeOvers                  int
	fleet                      string
	section                    string
	postgres                   map[string]string // settings of Postgres
}

func run(ctx context.Context, o options) error {
	chosen, err := sections.Chosen(tables(), o.section)
	if err != nil {
		return err
	}
	fmt.Printf("Muster on %d cores, fleet %s, durable Postgres\n\n", runtime.NumCPU(), o.fleet)
	for _, s := range chosen {
		if err := s.Take(ctx, o); err != nil {
			return fmt.Errorf("section %s: %w", s.Name, err)
		}
	}
	return nil
}

// site is a cluster with clients of an administrator, and Muster on it unless it is bare.
type site struct {
	cluster   *devcluster.Cluster
	namespace string
	kube      kubernetes.Interface
	dynamic   dynamic.Interface
	metadata  metadata.Interface
	stack     *stack.Stack     // nil on a bare one
	database  *postgres.Server // nil on a bare one
	stops     []func()
}

// startTimeout bounds the start of a site.
const startTimeout = 2 * time.Minute

func open(ctx context.Context, o options, name string) (_ *site, err error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	s := &site{}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	s.cluster, err = devcluster.Start(ctx, devcluster.Options{Name: fmt.Sprintf("bench-%s-%d", name, os.Getpid()), Fleet: o.fleet})
	if err != nil {
		return nil, err
	}
	s.stops = append(s.stops, s.cluster.Stop)
	database, err := postgres.Start(ctx, postgres.Options{Settings: o.postgres})
	if err != nil {
		return nil, err
	}
	s.database, s.stops = database, append(s.stops, database.Stop)
	dir, err := os.MkdirTemp("", "muster-bench-")
	if err != nil {
		return nil, err
	}
	s.stops = append(s.stops, func() { _ = os.RemoveAll(dir) })
	logger, err := logging.New("warn", "console")
	if err != nil {
		return nil, err
	}
	s.stack, err = stack.Start(ctx, stack.Options{
		Cluster: s.cluster, DatabaseURL: database.URL(), Dir: dir, Logger: logger, AllNodes: true,
	})
	if err != nil {
		return nil, err
	}
	s.stops = append(s.stops, s.stack.Stop)
	s.namespace, s.kube, s.dynamic, s.metadata = s.stack.Namespace, s.stack.Kube, s.stack.Dynamic, s.stack.Metadata
	return s, s.awaitNodes(ctx)
}

// awaitNodes waits until queue-manager knows all nodes.
func (s *site) awaitNodes(ctx context.Context) error {
	for {
		answer, err := s.stack.Queries.Nodes(ctx)
		if err != nil {
			return err
		}
		if len(answer.Nodes) >= s.cluster.Nodes {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d nodes are known: %w", len(answer.Nodes), s.cluster.Nodes, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (s *site) close() {
	for i := len(s.stops) - 1; i >= 0; i-- {
		s.stops[i]()
	}
}
