package cli

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/exit"
)

func record(id, namespace, kind string, phase workload.Phase) workload.Record {
	return workload.Record{Phase: phase, Workload: workload.Workload{ID: workload.ID(id), Namespace: namespace, Kind: kind, Name: "glue"}}
}

// homed is a record of an object that was made with kubectl in a cluster.
func homed(home string, r workload.Record) workload.Record {
	r.Submitter = workload.ByKubernetes + "/" + home + "/ana"
	return r
}

func TestChoose(t *testing.T) {
	t.Parallel()
	const cluster, job = "RayCluster", "RayJob"
	tests := map[string]struct {
		found    []workload.Record
		want     string
		code     int
		messages []string
	}{
		"none":                   {nil, "", exit.NotFound, []string{`no workload "glue"`}},
		"one":                    {[]workload.Record{record("a", "x", cluster, workload.Running)}, "a", 0, nil},
		"a live one comes first": {[]workload.Record{record("a", "x", cluster, workload.Queued), record("b", "x", cluster, workload.Failed)}, "a", 0, nil},
		"the latest that ended":  {[]workload.Record{record("a", "x", cluster, workload.Failed), record("b", "x", cluster, workload.Cancelled)}, "b", 0, nil},
		"two namespaces": {
			[]workload.Record{record("a", "x", cluster, workload.Queued), record("b", "y", cluster, workload.Running)},
			"", exit.Usage, []string{"RayCluster x/glue (a)", "RayCluster y/glue (b)", "--namespace"},
		},
		"two kinds": {
			[]workload.Record{record("a", "x", cluster, workload.Queued), record("b", "x", job, workload.Queued)},
			"", exit.Usage, []string{"RayCluster x/glue (a)", "RayJob x/glue (b)"},
		},
		"made with kubectl in two clusters": {
			[]workload.Record{homed("east", record("a", "x", cluster, workload.Queued)), homed("west", record("b", "x", cluster, workload.Queued))},
			"", exit.Usage, []string{"RayCluster x/glue in cluster east (a)", "RayCluster x/glue in cluster west (b)", "give the id"},
		},
		"live in one of two namespaces": {
			[]workload.Record{record("a", "x", cluster, workload.Queued), record("b", "y", cluster, workload.Failed)}, "a", 0, nil,
		},
		"ended in two namespaces": {
			[]workload.Record{record("a", "x", cluster, workload.Failed), record("b", "y", cluster, workload.Failed)}, "", exit.Usage, nil,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := choose(test.found, "glue", "")
			if code := exit.Code(err); code != test.code {
				t.Fatalf("exit code of %v is %d, want %d", err, code, test.code)
			}
			if string(got.ID) != test.want {
				t.Errorf("chose %q, want %q", got.ID, test.want)
			}
			for _, text := range test.messages {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("the error %q does not say %q", err, text)
				}
			}
		})
	}
}

func TestFindNode(t *testing.T) {
	t.Parallel()
	at := func(cluster, name string) query.Node {
		return query.Node{Node: capacity.Node{Cluster: cluster, Name: name}}
	}
	nodes := []query.Node{at("east", "n1"), at("east", "n2"), at("west", "n1")}
	if n, err := findNode(nodes, "n2"); err != nil || n.Cluster != "east" {
		t.Errorf("n2: %+v, %v", n, err)
	}
	if n, err := findNode(nodes, "west/n1"); err != nil || n.Cluster != "west" {
		t.Errorf("west/n1: %+v, %v", n, err)
	}
	if _, err := findNode(nodes, "n1"); exit.Code(err) != exit.Usage || !strings.Contains(err.Error(), "east/n1") {
		t.Errorf("n1: %v, want to be told of both clusters", err)
	}
	if _, err := findNode(nodes, "n3"); exit.Code(err) != exit.NotFound {
		t.Errorf("n3: %v, want exit code %d", err, exit.NotFound)
	}
}

func TestExitCode(t *testing.T) {
	t.Parallel()
	for want, err := range map[int]error{
		exit.OK: nil, exit.Failure: errors.New("x"), exit.Usage: exit.Usagef("x"), exit.NotFound: errors.Join(exit.NotFoundf("x")),
		exit.Unreachable: query.ErrNoAnswer,
	} {
		t.Run(fmt.Sprintf("code %d", want), func(t *testing.T) {
			if got := exit.Code(err); got != want {
				t.Errorf("exit code of %v is %d, want %d", err, got, want)
			}
		})
	}
}
