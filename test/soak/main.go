// Command soak runs Muster under churn and checks its promises from outside:
// gangs come and end, unmanaged pods take room, nodes break, go and come, pods and
// objects are deleted by hand. It ends with figures, and with an error if a
// promise was broken.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/local/devcluster"
	"muster.dev/muster/pkg/local/postgres"
	"muster.dev/muster/pkg/service/logging"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var o options
	minutes := flag.Float64("minutes", 10, "how long gangs come")
	flag.IntVar(&o.gangs, "gangs", 0, "gangs in that time; 0 means 100 a minute")
	flag.IntVar(&o.nodes, "nodes", 24, "nodes, of 8 CPUs and 4 GPUs each")
	flag.Uint64Var(&o.seed, "seed", 1, "of what is drawn")
	flag.Parse()
	o.lasts = time.Duration(*minutes * float64(time.Minute))
	if o.gangs == 0 {
		const perMinute = 100
		o.gangs = max(1, int(*minutes*perMinute))
	}
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

// run starts everything, soaks it and prints the figures.
func run(ctx context.Context, o options) error {
	const startTimeout = 2 * time.Minute
	starting, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	cluster, err := devcluster.Start(starting, devcluster.Options{Name: fmt.Sprintf("soak-%d", os.Getpid()), Fleet: "laptop"})
	if err != nil {
		return err
	}
	defer cluster.Stop()
	database, err := postgres.Start(starting, postgres.Options{})
	if err != nil {
		return err
	}
	defer database.Stop()
	dir, err := os.MkdirTemp("", "muster-soak-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	logger, err := logging.New("error", "console")
	if err != nil {
		return err
	}
	s, err := newSoak(ctx, o, parts{cluster: cluster, databaseURL: database.URL(), dir: dir, logger: logger})
	if err != nil {
		return err
	}
	figures, err := s.run(ctx)
	fmt.Print(figures)
	return err
}

// parts are what a soak runs on.
type parts struct {
	cluster          *devcluster.Cluster
	databaseURL, dir string
	logger           *zap.Logger
}

// options of a soak.
type options struct {
	lasts        time.Duration
	gangs, nodes int
	seed         uint64
}

var errPromise = errors.New("a promise was broken")
