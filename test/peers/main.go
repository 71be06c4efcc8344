// Command peers measures Kueue and Muster under the same load: RayClusters, RayJobs and AppWrappers
// that are created with a queue's label, as by kubectl. An object is admitted when its
// spec.suspend becomes false; an AppWrapper of Muster when the RayCluster in it is created. It also
// measures RayClusters that are submitted to Muster over NATS.
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
	"slices"

	"muster.dev/muster/test/bench/figures"
	"muster.dev/muster/test/bench/sections"
)

// options are the flags.
type options struct {
	burst, idle int
	rounds      int
	queues      int
	deep        int
	replaced    int
	fleet       string
	kueue       string // its binary; empty builds it
	binaryDir   string
	printKueue  bool
	kinds       string
	sections    string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var o options
	flag.IntVar(&o.burst, "burst", 1000, "gangs created at once")
	flag.IntVar(&o.idle, "idle", 100, "gangs created one after the other")
	flag.IntVar(&o.rounds, "rounds", 3, "how often what is measured at once is measured")
	flag.IntVar(&o.queues, "queues", 30, "queues of the burst with several queues")
	flag.IntVar(&o.deep, "deep", 5000, "gangs that wait in the measurements behind a backlog")
	flag.IntVar(&o.replaced, "replaced", 100, "gangs that end and are replaced from the backlog")
	flag.StringVar(&o.fleet, "fleet", "fleet-1000", "fleet of the dev clusters")
	flag.StringVar(&o.kueue, "kueue", "", "`binary` of Kueue; without it, Kueue is built from its module")
	flag.StringVar(&o.binaryDir, "out", "bin", "`directory` of the binary that is built")
	flag.BoolVar(&o.printKueue, "v", false, "print what Kueue logs")
	flag.StringVar(&o.kinds, "kinds", "raycluster,rayjob,appwrapper", "what gangs are created as, `names` with commas in between; each has a table")
	flag.StringVar(&o.sections, "section", "all", "what is measured, `names` with commas in between: "+sections.Names(measurements()))
	flag.Parse()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

// validate returns the kinds that are measured, and what of them.
func (o options) validate() ([]kind, []sections.Section[measurement], error) {
	if o.burst < 1 || o.idle < 1 || o.rounds < 1 || o.queues < 1 || o.deep < 1 || o.replaced < 1 || o.replaced > o.deep {
		return nil, nil, errors.New("-burst, -idle, -rounds, -queues, -deep and -replaced: want at least 1, and -replaced at most -deep")
	}
	chosen, err := sections.Chosen(measurements(), o.sections)
	if err != nil {
		return nil, nil, err
	}
	kinds, err := kindsOf(o.kinds)
	return kinds, chosen, err
}

func run(ctx context.Context, o options) error {
	kinds, chosen, err := o.validate()
	if err != nil {
		return err
	}
	if o.kueue == "" {
		if o.kueue, err = build(ctx, o.binaryDir); err != nil {
			return err
		}
	}
	fmt.Printf("Kueue %s and Muster on %d cores, fleet %s, without KubeRay\n\n", kueueVersion, runtime.NumCPU(), o.fleet)
	var last table // of RayClusters
	for _, of := range kinds {
		header := figures.Header(of.title + " created with a queue's label, as by kubectl")
		kueue, muster, err := measure(ctx, o, chosen, of)
		if err != nil {
			return err
		}
		t := table{o: o, kueue: kueue, muster: muster}
		t.print(header)
		if of.resource == rayClusters {
			last = t
		}
	}
	overNATS := slices.ContainsFunc(chosen, func(s sections.Section[measurement]) bool { return s.Name == natsSection })
	if overNATS && slices.ContainsFunc(kinds, func(of kind) bool { return of.resource == rayClusters }) {
		header := figures.Header("RayClusters submitted to Muster over NATS")
		if last.nats, err = measureNATS(ctx, o); err != nil {
			return fmt.Errorf("muster over nats: %w", err)
		}
		last.printNATS(header)
	}
	last.printRatios()
	return nil
}
