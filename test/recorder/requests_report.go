package recorder

import (
	"fmt"
	"maps"
	"slices"
)

// RequestsReport is what has been seen.
type RequestsReport struct {
	Requests, Provisioned, Failed int
	Nodes                         int // that came for requests
	Whole                         int // attempts all of whose pods ran at once
	Violations                    []string
}

// Report returns what has been seen so far, and judges what can be judged of it now.
func (r *Requests) Report() RequestsReport {
	r.mu.Lock()
	defer r.mu.Unlock()
	report := RequestsReport{Requests: len(r.requests), Violations: slices.Clone(r.violation)}
	violate := func(format string, args ...any) {
		report.Violations = append(report.Violations, fmt.Sprintf(format, args...))
	}
	for _, uid := range slices.Sorted(maps.Keys(r.requests)) {
		q := r.requests[uid]
		came := len(r.came[uid])
		report.Nodes += came
		if q.failed {
			report.Failed++
		}
		switch g := r.gangs[q.workload]; {
		case g == nil: // which is a violation already
		case q.provisioned:
			report.Provisioned++
			if int64(came) != q.pods {
				violate("%d nodes came for request %s, which asks for %d pods", came, q.name, q.pods)
			}
			if g.ended && !g.used[q.name] && !g.harmed {
				violate("nodes came for request %s, and workload %s never ran whole with it", q.name, q.workload)
			}
		case came > 0 && q.gone: // a node may be seen before the condition
			violate("%d nodes came for request %s, which was never provisioned", came, q.name)
		}
	}
	for node, uid := range r.nodes {
		if r.requests[uid] == nil {
			violate("node %s came for request %s, which was never seen", node, uid)
		}
	}
	for id, g := range r.gangs {
		report.Whole += len(g.whole)
		for name := range g.used {
			if q := r.byName[name]; q == nil || q.workload != id {
				violate("pods of workload %s name request %s, which is not its own", id, name)
			}
		}
	}
	return report
}

// Left names the requests that are there, and the nodes that came for requests.
func (r *Requests) Left() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var left []string
	for _, q := range r.requests {
		if !q.gone {
			left = append(left, "request "+q.name)
		}
	}
	for node := range r.nodes {
		left = append(left, "node "+node)
	}
	slices.Sort(left)
	return left
}
