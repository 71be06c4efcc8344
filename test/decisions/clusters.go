package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// clustersWarmUp gangs are decided before the measured ones.
const clustersWarmUp = 200

// compareClusters decides on the same gangs over one cluster and over many of together as
// many nodes, and prints how much longer the choice among them takes.
func compareClusters(gangs int) error {
	const nodes = 20_000
	fmt.Printf("\n%d nodes, %d gangs one after the other; a gang leaves for each that comes once half of the GPUs are in use\n", nodes, gangs)
	fmt.Printf("  %-44s %10s %10s %14s %8s\n", "clusters", "p50", "p99", "per CPU second", "ratio")
	alone := 0.0
	for _, c := range []struct {
		name     string
		clusters int
		priced   bool // each cluster has another price
		full     int  // clusters that are filled first and stay so
	}{
		{name: "1 of 20,000 nodes", clusters: 1},
		{name: "20 of 1,000 nodes, equally cheap", clusters: 20},
		{name: "20 of 1,000 nodes, each with its price", clusters: 20, priced: true},
		{name: "20 of 1,000 nodes, the 19 cheapest full", clusters: 20, priced: true, full: 19},
	} {
		s, err := newSites(nodes, c.clusters, c.priced)
		if err != nil {
			return err
		}
		s.fill(c.full)
		before := processorTime()
		times := s.play(gangs, c.full)
		each := float64(len(times)) / (processorTime() - before).Seconds()
		slices.Sort(times)
		if alone == 0 {
			alone = each
		}
		fmt.Printf("  %-44s %10s %10s %14.0f %8.2f\n", c.name, micros(times[len(times)/2]), micros(times[len(times)*99/100]), each, each/alone)
	}
	return nil
}

// processorTime is what this process has used of the processors. Other programs on the
// machine do not lengthen it.
func processorTime() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used) // fails for unknown arguments only
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// sites are clusters under one decision.
type sites struct {
	state    *admission.State
	clusters []string
	perSite  int
	random   *rand.Rand
	next     int
	live     []workload.ID
}

func newSites(nodes, clusters int, priced bool) (*sites, error) {
	s := &sites{perSite: nodes / clusters, random: rand.New(rand.NewPCG(1, 1))}
	var config quota.Config
	for i := range clusters {
		name := fmt.Sprintf("cluster-%02d", i)
		s.clusters = append(s.clusters, name)
		if priced {
			config.Clusters = append(config.Clusters, quota.Cluster{Name: name, Cost: quota.Cost{gpu: int64(1000 + i)}})
		}
	}
	tree, err := quota.New(config)
	if err != nil {
		return nil, fmt.Errorf("describe %d clusters: %w", clusters, err)
	}
	s.state = admission.NewState(tree)
	for _, cluster := range s.clusters {
		for i := range s.perSite {
			name := fmt.Sprintf("%s-node-%05d", cluster, i)
			s.state.SetNode(capacity.Node{
				Cluster: cluster, Name: name, Ready: true, Labels: map[string]string{capacity.HostnameLabel: name},
				Allocatable: resource.List{"cpu": 96_000, "memory": 1 << 40, "pods": 110, gpu: 8},
			})
		}
	}
	return s, nil
}

// fill has gangs take every GPU of the first clusters, and stay.
func (s *sites) fill(clusters int) {
	for _, cluster := range s.clusters[:clusters] {
		for range s.perSite / 100 {
			w := gang(s.random, 101)
			w.PodSets[1].Template.Requests = resource.List{"cpu": 8000, "memory": 1 << 36, "pods": 1, gpu: 8}
			for i := range w.PodSets {
				w.PodSets[i].Clusters = workload.ClusterSelector(workload.ClusterNameKey + "=" + cluster)
			}
			s.submit(w)
			s.decide()
		}
	}
	s.live = nil
}

func (s *sites) submit(w *workload.Workload) {
	s.next++
	w.ID, w.Queue = workload.ID(fmt.Sprintf("gang-%d", s.next)), "queue"
	s.state.Enqueue(admission.Waiting{Order: int64(s.next), Workload: w})
}

func (s *sites) decide() {
	for _, a := range admission.Decide(s.state, time.Unix(int64(s.next), 0)).Admissions {
		s.live = append(s.live, a.Workload)
	}
}

// play decides on gangs and returns how long each decision took.
func (s *sites) play(gangs, full int) []time.Duration {
	// A gang of the mean size has 8.5 pods with 3.75 GPUs each.
	most := (len(s.clusters) - full) * s.perSite * 8 / 2 / 32
	var times []time.Duration
	for i := range gangs + clustersWarmUp {
		if len(s.live) > most {
			at := s.random.IntN(len(s.live))
			s.state.Leave(s.live[at])
			s.state.Release(s.live[at])
			s.live = slices.Delete(s.live, at, at+1)
			s.decide()
		}
		w := gang(s.random, 2+s.random.IntN(16))
		began := time.Now()
		s.submit(w)
		s.decide()
		if i >= clustersWarmUp {
			times = append(times, time.Since(began))
		}
	}
	return times
}
