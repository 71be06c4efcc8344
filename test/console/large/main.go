// Command large measures the console on a large site: a real Postgres with 100,000 waiting
// workloads, NATS with 10,000 nodes, queue-manager, intake's HTTP API and the console, by the
// services' own Run. For each page it prints the time until the first byte, of the first visit
// after a login and of later ones, and the size. A page over 1 MB is an error.
// What it prints goes into docs/performance.md.
//
// It has no Kubernetes: nodes are what a capacity-watcher would publish.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"time"
)

// mostBytes is what a page may have.
const mostBytes = 1 << 20

func main() {
	nodes := flag.Int("nodes", 10_000, "`how many` nodes, of 8 GPUs each")
	waits := flag.Int("waiting", 100_000, "`how many` workloads that wait")
	visits := flag.Int("visits", 10, "`how many` visits of each page after the first")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *nodes, *waits, *visits); err != nil {
		fmt.Fprintln(os.Stderr, "large:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, nodes, waits, visits int) error {
	dir, err := os.MkdirTemp("", "muster-large-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	s := &site{dir: dir}
	defer s.close()
	if err := s.open(ctx, nodes, waits); err != nil {
		return err
	}
	workload, err := s.firstWorkload(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("The console with %d nodes and %d waiting workloads, all services on %d cores\n", nodes, waits, runtime.NumCPU())
	fmt.Printf("%-55s %12s %12s %12s %10s\n", "page", "first visit", "later p50", "longest", "bytes")
	for _, path := range []string{
		"/", "/?window=24h", "/queues", "/queues/waiting", "/queues/waiting?window=7d", "/workloads", "/workloads?phase=queued", workload, workload + "/manifest",
		"/nodes", "/nodes?state=broken", "/nodes/bench/gpu-00001", "/usage", "/decisions", "/whatif",
	} {
		m, err := s.visit(ctx, path, visits)
		if err != nil {
			return fmt.Errorf("visit %s: %w", path, err)
		}
		slices.Sort(m.later)
		fmt.Printf("%-55s %9d ms %9d ms %9d ms %10d\n", path, m.first.Milliseconds(), m.later[len(m.later)/2].Milliseconds(), m.later[len(m.later)-1].Milliseconds(), m.bytes)
		if m.bytes > mostBytes {
			return fmt.Errorf("%s has %d bytes, want %d at most", path, m.bytes, mostBytes)
		}
	}
	return nil
}

// measured is what was seen of a page.
type measured struct {
	first time.Duration
	later []time.Duration
	bytes int
}
