package gang

import (
	"strings"
	"testing"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

var planned = Pod{
	Namespace: "n", Name: "p", UID: "p", Cluster: "c", Workload: "w", Attempt: 2, PodSet: "workers",
	Controller: Controller{Kind: "RayCluster", Name: "r", UID: "r"},
}

func changed(change func(*Pod)) Pod {
	p := planned
	change(&p)
	return p
}

// TestUnplanned: what an object made without Muster's labels and gate is found,
// whatever it carries instead.
func TestUnplanned(t *testing.T) {
	t.Parallel()
	command := &event.GangCommand{Workload: "w", Cluster: "c", Attempt: 2, Namespace: "n", PodSets: []workload.PodSet{{Name: "workers"}}}
	for name, c := range map[string]struct {
		pod  Pod
		want bool
	}{
		"as admitted":          {planned, false},
		"no labels":            {changed(func(p *Pod) { p.Cluster, p.Workload, p.Attempt, p.PodSet = "", "", 0, "" }), true},
		"another cluster":      {changed(func(p *Pod) { p.Cluster = "d" }), true},
		"another's labels":     {changed(func(p *Pod) { p.Workload = "theirs" }), true},
		"another attempt":      {changed(func(p *Pod) { p.Attempt = 99 }), true},
		"an unknown set":       {changed(func(p *Pod) { p.PodSet = "added" }), true},
		"at its gate":          {changed(func(p *Pod) { p.Workload, p.Gated = "", true }), false},
		"ended":                {changed(func(p *Pod) { p.Workload, p.Ended = "", true }), false},
		"cleanup":              {changed(func(p *Pod) { p.Workload, p.Cleanup = "", true }), false},
		"in another namespace": {changed(func(p *Pod) { p.Workload, p.Namespace = "", "m" }), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := len(Unplanned(command, []Pod{c.pod})) == 1; got != c.want {
				t.Errorf("unplanned: %v, want %v", got, c.want)
			}
		})
	}
}

// TestMembers: labels alone make no member.
func TestMembers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pod  Pod
		want bool
	}{
		"of the created RayCluster": {planned, true},
		"of a RayCluster of it":     {changed(func(p *Pod) { p.Controller.UID = "of the job" }), true},
		"of another RayCluster":     {changed(func(p *Pod) { p.Controller.UID = "another" }), false},
		"of nothing":                {changed(func(p *Pod) { p.Controller = Controller{} }), false},
		"created itself":            {changed(func(p *Pod) { p.Controller, p.UID = Controller{}, "r" }), true},
		"of a Job":                  {changed(func(p *Pod) { p.Controller.Kind, p.Controller.UID = "Job", "j" }), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := len(Members([]Pod{c.pod}, []string{"r"}, []string{"of the job"})) == 1; got != c.want {
				t.Errorf("member: %v, want %v", got, c.want)
			}
			if len(Members([]Pod{c.pod}, nil, nil)) != 1 {
				t.Error("no member while nothing is known of what was created")
			}
		})
	}
}

// TestExtra: beyond the places of a pod set are those that come last; pods on nodes
// stay before pods that wait, and what ends takes no place.
func TestExtra(t *testing.T) {
	t.Parallel()
	command := &event.GangCommand{
		Namespace: "n", Attempt: 2, PodSets: []workload.PodSet{{Name: "workers"}, {Name: "submit", Role: workload.RoleSubmitter}},
		Placements: []workload.Placement{{PodSet: "workers", Node: "a", Pods: 1}, {PodSet: "workers", Node: "b", Pods: 1}},
	}
	named := func(name string, change func(*Pod)) Pod {
		p := changed(change)
		p.Name = name
		return p
	}
	bound := func(p *Pod) { p.Node = "a" }
	extra := Extra(command, []Pod{
		named("waits", func(*Pod) {}), named("1", bound), named("2", bound), named("3", bound),
		named("ends", func(p *Pod) { p.Node, p.Deleting = "a", true }), named("ended", func(p *Pod) { p.Node, p.Ended = "a", true }),
		named("gated", func(p *Pod) { p.Gated = true }), named("former", func(p *Pod) { p.Attempt = 1 }),
		named("submits", func(p *Pod) { p.PodSet = "submit" }), named("elsewhere", func(p *Pod) { p.Namespace = "m" }),
	})
	var names []string
	for _, p := range extra {
		names = append(names, p.Name)
	}
	if got := strings.Join(names, " "); got != "3 waits" {
		t.Errorf("extra are %q, want \"3 waits\"", got)
	}
}
