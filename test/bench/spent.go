package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"muster.dev/muster/test/bench/figures"
)

// components are the processes whose time is counted, beside this one, in the order of print.
var components = [...]string{"apiserver", "etcd", "scheduler"}

// podWrites are the writes of pods that are counted, in the order of print: what marks their lines
// in the API server's metrics.
var podWrites = [...]struct{ title, verb, subresource string }{
	{"create", "POST", ""}, {"patch", "PATCH", ""}, {"bind", "POST", "binding"}, {"status", "P", "status"},
}

// spent is what pods have cost so far.
type spent struct {
	writes [len(podWrites)]float64
	times  [len(components) + 1]time.Duration // the last is this process's
}

// The titles of the columns of spent.
var (
	writesTitle = fmt.Sprintf("%7s %7s %7s %7s", podWrites[0].title, podWrites[1].title, podWrites[2].title, podWrites[3].title)
	timesTitle  = fmt.Sprintf("CPU: %9s %9s %9s %9s", components[0], components[1], components[2], "client")
)

// spent reads the counts of the API server, and the processor time of the components.
func (s *site) spent(ctx context.Context) (now spent, err error) {
	pids, err := s.cluster.Components(ctx)
	if err != nil {
		return now, err
	}
	for i, name := range components {
		pid, runs := pids[name]
		if !runs {
			return now, fmt.Errorf("read processor times: the dev cluster has no component %q", name)
		}
		now.times[i] = figures.ProcessTime(pid)
	}
	now.times[len(components)] = figures.ProcessTime(os.Getpid())
	text, err := s.kube.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return now, fmt.Errorf("read the API server's metrics: %w", err)
	}
	now.writes, err = podWritesOf(string(text))
	return now, err
}

// podWritesOf adds up the writes of pods in the API server's metrics.
func podWritesOf(metrics string) (writes [len(podWrites)]float64, err error) {
	for line := range strings.Lines(metrics) {
		if !strings.HasPrefix(line, "apiserver_request_total{") || !strings.Contains(line, `resource="pods"`) {
			continue
		}
		for i, of := range podWrites {
			if !strings.Contains(line, `verb="`+of.verb) || !strings.Contains(line, `subresource="`+of.subresource+`"`) {
				continue
			}
			var value float64
			if _, err := fmt.Sscan(line[strings.LastIndexByte(strings.TrimSpace(line), ' ')+1:], &value); err != nil {
				return writes, fmt.Errorf("read the API server's metrics: line %q: %w", line, err)
			}
			writes[i] += value
		}
	}
	return writes, nil
}

func (s spent) writesSince(before spent) string {
	var w [len(podWrites)]float64
	for i := range w {
		w[i] = s.writes[i] - before.writes[i]
	}
	return fmt.Sprintf("%7.0f %7.0f %7.0f %7.0f", w[0], w[1], w[2], w[3])
}

func (s spent) timesSince(before spent) string {
	var t [len(components) + 1]float64
	for i := range t {
		t[i] = (s.times[i] - before.times[i]).Seconds()
	}
	return fmt.Sprintf("     %7.2f s %7.2f s %7.2f s %7.2f s", t[0], t[1], t[2], t[3])
}
