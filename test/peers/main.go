// Command peers measures Kueue and Muster under the same load: RayClusters that are created
// with a queue's label, as by kubectl. An object is admitted when its spec.suspend becomes
// false. It also measures RayClusters that are submitted to Muster over NATS.
//
// For each measurement Kueue and Muster take turns, each on a dev cluster of its own without
// KubeRay, so that what else the machine does concerns both.
//
// What it prints goes into docs/performance.md. It is no test: nothing fails here because
// something is slow.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
)

// options are the flags.
type options struct {
	burst, idle  int
	queues       int
	deep         int
	replaced     int
	fleet        string
	kueue        string // its binary; empty builds it
	binaryDir    string
	printKueue   bool
	withoutNATS  bool
	withoutDepth bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var o options
	flag.IntVar(&o.burst, "burst", 1000, "gangs created at once")
	flag.IntVar(&o.idle, "idle", 100, "gangs created one after the other")
	flag.IntVar(&o.queues, "queues", 30, "queues of the burst with several queues")
	flag.IntVar(&o.deep, "deep", 5000, "gangs that wait in the measurements behind a backlog")
	flag.IntVar(&o.replaced, "replaced", 100, "gangs that end and are replaced from the backlog")
	flag.StringVar(&o.fleet, "fleet", "fleet-1000", "fleet of the dev clusters")
	flag.StringVar(&o.kueue, "kueue", "", "`binary` of Kueue; without it, Kueue is built from its module")
	flag.StringVar(&o.binaryDir, "out", "bin", "`directory` of the binary that is built")
	flag.BoolVar(&o.printKueue, "v", false, "print what Kueue logs")
	flag.BoolVar(&o.withoutNATS, "without-nats", false, "leave out the measurements over NATS")
	flag.BoolVar(&o.withoutDepth, "without-backlog", false, "leave out the measurements behind a backlog")
	flag.Parse()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	if o.burst < 1 || o.idle < 1 || o.queues < 1 || o.deep < 1 || o.replaced < 1 || o.replaced > o.deep {
		return errors.New("-burst, -idle, -queues, -deep and -replaced: want at least 1, and -replaced at most -deep")
	}
	if o.kueue == "" {
		var err error
		if o.kueue, err = build(ctx, o.binaryDir); err != nil {
			return err
		}
	}
	fmt.Printf("Kueue %s and Muster on %d cores, fleet %s, without KubeRay; load before: %s\n\n", kueueVersion, runtime.NumCPU(), o.fleet, load())
	kueue, muster, nats, err := measure(ctx, o)
	if err != nil {
		return err
	}
	printTable(o, kueue, muster, nats)
	return nil
}
