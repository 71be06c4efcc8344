package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"muster.dev/muster/test/bench/figures"
)

// handsAtOnce is how many creations by hand are under way, as many as the
// dispatcher has.
const handsAtOnce = 32

// burstTimeout bounds a burst, until the last gang runs.
const burstTimeout = 5 * time.Minute

// burst is how fast gangs that come at once are created, and run, a second.
type burst struct{ created, running float64 }

// bursts measures, round after round, how fast the objects are created by hand on a bare
// cluster, and how fast Muster creates as many submissions, each in a fresh cluster: until the
// last object is there, and until the last gang runs. One gang of each cluster comes first and
// is not counted: the API server compiles its schemas and policies for it. The objects and the control plane share
// the machine, so single rounds differ much; the median is what counts.
func bursts(ctx context.Context, o options) error {
	var bares, musters, ratios [2][]float64
	fmt.Println(figures.Header(fmt.Sprintf("%d gangs at once, gangs a second; the baseline is a bare cluster, by hand", o.burst)))
	fmt.Printf("  %-8s %30s   %30s\n", "", "to the last RayCluster created", "to the last gang running")
	line := func(what string, bare, muster burst, ratio [2]float64) {
		fmt.Printf("  %-8s %8.1f %10.1f %10.2f   %8.1f %10.1f %10.2f", what, bare.created, muster.created, ratio[0], bare.running, muster.running, ratio[1])
	}
	fmt.Printf("  %-8s %8s %10s %10s   %8s %10s %10s   %s\n", "", "baseline", "Muster", "ratio", "baseline", "Muster", "ratio", "all admitted and committed after")
	for round := range o.rounds {
		bare, err := burstByHand(ctx, o)
		if err != nil {
			return err
		}
		muster, admitted, err := burstByMuster(ctx, o)
		if err != nil {
			return err
		}
		ratio := [2]float64{muster.created / bare.created, muster.running / bare.running}
		for i, each := range [2][2]float64{{bare.created, muster.created}, {bare.running, muster.running}} {
			bares[i], musters[i], ratios[i] = append(bares[i], each[0]), append(musters[i], each[1]), append(ratios[i], ratio[i])
		}
		line(fmt.Sprintf("round %d", round+1), bare, muster, ratio)
		fmt.Printf("   %s\n", admitted.Round(time.Millisecond))
	}
	line("median", burst{figures.Median(bares[0]), figures.Median(bares[1])}, burst{figures.Median(musters[0]), figures.Median(musters[1])},
		[2]float64{figures.Median(ratios[0]), figures.Median(ratios[1])})
	fmt.Printf("\n  %-8s created: baseline %s, Muster %s; running: baseline %s, Muster %s\n\n", "spread",
		figures.Spread(bares[0]), figures.Spread(musters[0]), figures.Spread(bares[1]), figures.Spread(musters[1]))
	return nil
}

// burstByHand creates the gangs on a cluster without Muster. Their pods are gated as Muster
// gates them, and each gate is lifted as soon as its pod is seen.
func burstByHand(ctx context.Context, o options) (burst, error) {
	s, err := openBare(ctx, o)
	if err != nil {
		return burst{}, err
	}
	defer s.close()
	ctx, cancel := context.WithTimeout(ctx, burstTimeout)
	defer cancel()
	lifter := s.lift(ctx, gangPods*(o.burst+1))
	running, err := s.followPods(ctx, func(pod *corev1.Pod) { lifter.pods <- pod.Name })
	if err != nil {
		return burst{}, err
	}
	create := func(ctx context.Context, object *unstructured.Unstructured) error {
		_, err := s.dynamic.Resource(rayClusters).Namespace(s.namespace).Create(ctx, object, metav1.CreateOptions{})
		return err
	}
	objects := make([]*unstructured.Unstructured, o.burst+1)
	for i := range objects {
		if objects[i], err = gated(fmt.Sprintf("bare-%d", i), 1); err != nil {
			return burst{}, err
		}
	}
	if err := create(ctx, objects[o.burst]); err != nil {
		return burst{}, err
	}
	if _, err := running.await(ctx, 1); err != nil {
		return burst{}, err
	}
	group, creating := errgroup.WithContext(ctx)
	group.SetLimit(handsAtOnce)
	began := time.Now()
	for _, object := range objects[:o.burst] {
		group.Go(func() error { return create(creating, object) })
	}
	if err := group.Wait(); err != nil {
		return burst{}, err
	}
	created := time.Now()
	last, err := running.await(ctx, o.burst+1)
	return rates(o.burst, began, created, last), err
}

// rates returns how many gangs a second were created, and ran.
func rates(gangs int, began, created, running time.Time) burst {
	return burst{float64(gangs) / created.Sub(began).Seconds(), float64(gangs) / running.Sub(began).Seconds()}
}

func burstByMuster(ctx context.Context, o options) (rate burst, admitted time.Duration, err error) {
	s, err := open(ctx, o, "muster")
	if err != nil {
		return burst{}, 0, err
	}
	defer s.close()
	ctx, cancel := context.WithTimeout(ctx, burstTimeout)
	defer cancel()
	seen, err := s.watch(ctx)
	if err != nil {
		return burst{}, 0, err
	}
	running, err := s.followPods(ctx, nil)
	if err != nil {
		return burst{}, 0, err
	}
	commanded, err := s.lastCommand()
	if err != nil {
		return burst{}, 0, err
	}
	if _, err := s.submit("first"); err != nil {
		return burst{}, 0, err
	}
	if _, err := running.await(ctx, 1); err != nil {
		return burst{}, 0, err
	}
	var names []string
	began := time.Now()
	for i := range o.burst {
		names = append(names, fmt.Sprintf("gang-%d", i))
		if _, err := s.submit(names[i]); err != nil {
			return burst{}, 0, err
		}
	}
	created, err := seen.await(ctx, names)
	if err != nil {
		return burst{}, 0, err
	}
	last, err := running.await(ctx, o.burst+1)
	return rates(o.burst, began, created, last), commanded().Sub(began), err
}
