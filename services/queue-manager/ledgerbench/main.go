// Command ledgerbench measures the ledger on a real, durable Postgres: gangs
// admitted per second, reading everything at a start, memory, taking over, and
// the outbox. Each figure has a baseline of the same Postgres in the same run.
// What it prints goes into docs/performance.md.
//
// The first part drives the rules (package state) and the store directly, as the
// service does, without NATS. The second runs the service itself, as processes.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/pprof"
	"strings"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/local/postgres"
	"muster.dev/muster/services/queue-manager/internal/store"
	"muster.dev/muster/services/queue-manager/ledgerbench/waiting"
)

type options struct {
	waiting    counts
	gangs      int
	single     int
	processes  bool
	added      string
	replicated bool
	record     bool
	profile    string
	clusters   int
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	o := options{waiting: counts{1_000_000}}
	flag.Var(&o.waiting, "waiting", "`counts` of workloads that wait and do not fit, each measured after none, ascending, such as 10000,100000")
	flag.IntVar(&o.gangs, "gangs", 30_000, "gangs to admit, 100 in a transaction")
	flag.IntVar(&o.single, "single", 1_000, "gangs to admit, one in a transaction")
	flag.BoolVar(&o.processes, "processes", true, "measure starts and take-overs of the service, too")
	flag.StringVar(&o.added, "added", "0s,3ms", "`times` to add to each commit; a Postgres is made for each")
	flag.BoolVar(&o.replicated, "replicated", false, "each commit waits for a second Postgres on this machine to have flushed it (synchronous_commit = on)")
	flag.BoolVar(&o.record, "record", true, "record decisions, as the service does")
	flag.IntVar(&o.clusters, "clusters", 0, "`number` of clusters over which admissions are measured, and over one cluster with as many nodes as all of them; nothing else is")
	flag.StringVar(&o.profile, "profile", "", "`file` for a CPU profile")
	flag.Parse()
	if o.clusters < 0 || o.clusters > clusterNodes {
		fmt.Fprintf(os.Stderr, "ledgerbench: clusters %d: want between 1 and %d\n", o.clusters, clusterNodes)
		os.Exit(2)
	}
	if o.profile != "" {
		file, err := os.Create(o.profile)
		if err == nil {
			err = pprof.StartCPUProfile(file)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "ledgerbench:", err)
			os.Exit(1)
		}
	}
	err := run(ctx, o)
	pprof.StopCPUProfile()
	if err != nil {
		fmt.Fprintln(os.Stderr, "ledgerbench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	fmt.Printf("The ledger on %d cores, Postgres with fsync on the same machine\n", runtime.NumCPU())
	if o.clusters > 0 {
		return compareClusters(ctx, o)
	}
	for text := range strings.SplitSeq(o.added, ",") {
		delay, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("added: %w", err)
		}
		if err := ledger(ctx, o, delay); err != nil {
			return err
		}
	}
	return nil
}

// settings are those of a small server; the added delay is Postgres' own
// commit_delay, a sleep before each flush.
func settings(delay time.Duration) map[string]string {
	return map[string]string{
		"shared_buffers": "'512MB'", "max_wal_size": "'4GB'", "checkpoint_timeout": "'15min'",
		"commit_delay": fmt.Sprint(delay.Microseconds()), "commit_siblings": "0",
	}
}

// ledger measures on one Postgres: with no gang waiting, then with many.
func ledger(ctx context.Context, o options, delay time.Duration) error {
	server, err := postgres.Start(ctx, postgres.Options{Settings: settings(delay)})
	if err != nil {
		return err
	}
	defer server.Stop()
	how := fmt.Sprintf("With %s added to each commit (commit_delay)", delay)
	if o.replicated {
		standby, err := server.Standby(ctx)
		if err != nil {
			return err
		}
		defer standby.Stop()
		if err := server.Synchronous(ctx, standby); err != nil {
			return err
		}
		how += ", flushed by a second server, too"
	}
	url, err := server.CreateDatabase(ctx, "muster", "")
	if err != nil {
		return err
	}
	if _, err := store.Migrate(ctx, url); err != nil {
		return err
	}
	fmt.Printf("\n%s\n", how)
	if err := baseline(ctx, url); err != nil {
		return fmt.Errorf("baseline: %w", err)
	}
	seeded := 0
	for _, count := range append(counts{0}, o.waiting...) {
		if err := waiting.Seed(ctx, url, seeded, count); err != nil {
			return fmt.Errorf("seed %d waiting workloads: %w", count, err)
		}
		seeded = count
		t, err := openTerm(ctx, url, o.record, quota.Config{})
		if err != nil {
			return err
		}
		t.report(count)
		if err := t.admitAlone(ctx, o.single); err != nil {
			t.close()
			return fmt.Errorf("admit %d gangs alone, %d waiting: %w", o.single, count, err)
		}
		for _, size := range []struct{ each, gangs int }{{1, o.single}, {100, o.gangs}} {
			err := reportWAL(ctx, url, size.gangs, func() error { return t.admit(ctx, size.each, size.gangs) })
			if err != nil {
				t.close()
				return fmt.Errorf("admit %d gangs, %d in a transaction, %d waiting: %w", size.gangs, size.each, count, err)
			}
		}
		t.close()
	}
	if delay == 0 && o.processes {
		return takeOvers(ctx, url, seeded)
	}
	return nil
}
