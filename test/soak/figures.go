package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/test/recorder"
)

// figures are what a soak has seen.
type figures struct {
	came, took time.Duration
	ended      map[workload.Phase]int
	attempts   int // beyond the first of each gang
	evictions  map[workload.ReasonKind]int
	healings   map[workload.ReasonKind]int
	deeds      map[string]int
	resized    map[string]int
	report     recorder.Report
	unplanned  int
	faults     []string
}

func newFigures() figures {
	return figures{ended: map[workload.Phase]int{}, evictions: map[workload.ReasonKind]int{}, healings: map[workload.ReasonKind]int{}, resized: map[string]int{}}
}

// longestPartial bounds how long a gang may have pods running beside others that
// cannot be placed: the time to notice, to find another place or none, and to
// tear down with the grace, on a busy machine.
const longestPartial = 30 * time.Second

// check compares what was seen with what is promised.
func (s *soak) check(ctx context.Context) error {
	if err := s.leftOver(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f := &s.figures
	f.report = s.recorder.Report()
	for _, b := range f.report.Bindings {
		if !s.plans[b] {
			f.unplanned++
			f.fault("a pod of %s of workload %s, attempt %s, was bound to %s, which was never told as its place", b.PodSet, b.Workload, b.Attempt, b.Node)
		}
	}
	for id, w := range s.life {
		f.ended[w.Phase]++
		f.attempts += w.Attempt - 1
		if w.Phase != workload.Succeeded && (w.Reason == nil || w.Reason.Message == "") {
			f.fault("workload %s is %s without a reason", id, w.Phase)
		}
		if w.Phase == workload.Failed && w.Reason.Kind != workload.ReasonJobEnded {
			f.fault("workload %s failed because of %s: %s", id, w.Reason.Kind, w.Reason.Message)
		}
	}
	for _, e := range []recorder.Episodes{f.report.Starting, f.report.Healing} {
		if e.Longest > longestPartial {
			f.fault("a gang ran in part for %s", e.Longest)
		}
	}
	f.faults = append(f.faults, f.report.Violations...)
	if len(f.faults) > 0 {
		return fmt.Errorf("%w: %d times", errPromise, len(f.faults))
	}
	return nil
}

func (f *figures) fault(format string, args ...any) {
	f.faults = append(f.faults, fmt.Sprintf(format, args...))
}

// leftOver checks that nothing is left of gangs that have all ended.
func (s *soak) leftOver(ctx context.Context) error {
	ours := metav1.ListOptions{LabelSelector: "muster.dev/cluster=" + s.Pool}
	pods, err := s.Kube.CoreV1().Pods("").List(ctx, ours)
	if err != nil {
		return err
	}
	for _, pod := range pods.Items {
		if pod.Status.Phase != "Succeeded" && pod.Status.Phase != "Failed" {
			s.figures.fault("pod %s is left over", pod.Name)
		}
	}
	clusters, err := s.Dynamic.Resource(ray.Resource("rayclusters")).List(ctx, ours)
	if err != nil {
		return err
	}
	for _, c := range clusters.Items {
		s.figures.fault("RayCluster %s is left over", c.GetName())
	}
	nodes, err := s.Queries.Nodes(ctx)
	if err != nil {
		return err
	}
	for _, n := range nodes.Nodes {
		if !n.Reserved.Equal(nil) {
			s.figures.fault("on node %s %s is reserved for no workload", n.Name, n.Reserved)
		}
	}
	return nil
}

// String implements fmt.Stringer.
func (f *figures) String() string {
	var b strings.Builder
	line := func(what, format string, args ...any) {
		fmt.Fprintf(&b, "%-34s %s\n", what, fmt.Sprintf(format, args...))
	}
	line("gangs came for, all ended after", "%s, %s", f.came.Round(time.Second), f.took.Round(time.Second))
	line("gangs by end", "%s", counts(f.ended))
	line("attempts beyond the first", "%d", f.attempts)
	line("evictions by reason", "%s", counts(f.evictions))
	line("healings by reason", "%s", counts(f.healings))
	line("running gangs resized", "%s", counts(f.resized))
	line("disturbances", "%s", counts(f.deeds))
	line("events seen by the recorder", "%d", f.report.Events)
	line("attempts that ran whole", "%d", f.report.Gangs)
	line("pods bound, not as planned", "%d, %d", len(f.report.Bindings), f.unplanned)
	line("in part while starting", "%d times, at most %s", f.report.Starting.Count, f.report.Starting.Longest.Round(time.Millisecond))
	line("in part while healing", "%d times, at most %s", f.report.Healing.Count, f.report.Healing.Longest.Round(time.Millisecond))
	line("promises broken", "%d", len(f.faults))
	for _, fault := range f.faults {
		fmt.Fprintf(&b, "  %s\n", fault)
	}
	return b.String()
}

func counts[K ~string](of map[K]int) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(of)) {
		parts = append(parts, fmt.Sprintf("%s %d", key, of[key]))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}
