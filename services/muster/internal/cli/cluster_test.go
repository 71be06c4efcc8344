package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/policyfile/kueue"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/exit"
)

// clusterManager answers as queue-manager does in which a cluster east is known.
type clusterManager struct {
	east      query.ClusterStatus
	workloads []workload.Record
	changed   []query.ConfigureRequest
	asked     []workload.Phase
}

func (m *clusterManager) Ask(_ context.Context, subject string, request []byte) ([]byte, error) {
	switch subject {
	case query.StatusSubject:
		return json.Marshal(query.StatusAnswer{Clusters: []query.ClusterStatus{m.east}})
	case query.WorkloadsSubject:
		var r query.WorkloadsRequest
		if err := json.Unmarshal(request, &r); err != nil {
			return nil, err
		}
		m.asked = r.Phases
		return json.Marshal(query.WorkloadsAnswer{Workloads: m.workloads})
	case query.ConfigureSubject:
		var r query.ConfigureRequest
		if err := json.Unmarshal(request, &r); err != nil {
			return nil, err
		}
		m.changed = append(m.changed, r)
		return []byte("{}"), nil
	}
	return nil, fmt.Errorf("no answer to %s", subject)
}

func cordonOf(left, forced bool) *quota.ClusterCordon {
	return &quota.ClusterCordon{Name: "east", Drain: true, Left: left, Forced: forced}
}

// TestAClusterIsOrderedToLeaveOnce: one that leaves already is left alone, unless it is now to
// leave by force, and places that only ended workloads hold count.
func TestAClusterIsOrderedToLeaveOnce(t *testing.T) {
	t.Parallel()
	runs := workload.Record{Workload: workload.Workload{Name: "runs", Namespace: "ns"}, Phase: workload.Running, Cluster: "east", Holding: true}
	elsewhere := workload.Record{Workload: workload.Workload{Name: "elsewhere", Namespace: "ns"}, Phase: workload.Running, Cluster: "west", Holding: true}
	for name, c := range map[string]struct {
		east  query.ClusterStatus
		there []workload.Record
		force bool
		want  string // the error
		order bool
	}{
		"empty":           {there: []workload.Record{elsewhere}, order: true},
		"has left":        {east: query.ClusterStatus{Cordon: cordonOf(true, false)}},
		"left by force":   {east: query.ClusterStatus{Cordon: cordonOf(true, true)}},
		"now by force":    {east: query.ClusterStatus{Cordon: cordonOf(true, false)}, force: true, order: true},
		"is drained":      {east: query.ClusterStatus{Cordon: cordonOf(false, false)}, order: true},
		"a gang runs":     {east: query.ClusterStatus{Live: 1}, there: []workload.Record{runs, elsewhere}, want: "1 workloads hold places there: "},
		"pods remain":     {east: query.ClusterStatus{Live: 1}, want: "1 workloads that have ended hold places there"},
		"both":            {east: query.ClusterStatus{Live: 2}, there: []workload.Record{runs}, want: "and 1 that have ended"},
		"a gang is moved": {east: query.ClusterStatus{Live: 1}, there: []workload.Record{runs}, force: true, order: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &clusterManager{east: c.east, workloads: c.there}
			m.east.Name = "east"
			var out strings.Builder
			err := (&leaveOptions{force: c.force, why: "lost"}).order(t.Context(), query.NewClientOver(m), &out, "east")
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("the error is %v, want %q", err, c.want)
			}
			if (len(m.changed) == 1) != c.order {
				t.Errorf("%d orders, want one: %t", len(m.changed), c.order)
			}
			if slices.ContainsFunc(m.asked, workload.Phase.Final) {
				t.Errorf("asked are the phases %v, want none that is final: the archive is long", m.asked)
			}
		})
	}
}

// TestKeysGoOnceTheClusterHasLeft: those of a lost cluster, and of one in which something may
// still run, stay.
func TestKeysGoOnceTheClusterHasLeft(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		east query.ClusterStatus
		code int
	}{
		"has left":      {query.ClusterStatus{Name: "east", State: query.ClusterLeft, Cordon: cordonOf(true, false)}, exit.OK},
		"not known":     {query.ClusterStatus{Name: "west"}, exit.OK},
		"leaves":        {query.ClusterStatus{Name: "east", State: query.ClusterLeaving, Cordon: cordonOf(true, false)}, exit.TryAgain},
		"has come back": {query.ClusterStatus{Name: "east", State: query.ClusterReady}, exit.TryAgain},
		"left by force": {query.ClusterStatus{Name: "east", State: query.ClusterLeft, Cordon: cordonOf(true, true)}, exit.Rejected},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				err := awaitLeft(t.Context(), query.NewClientOver(&clusterManager{east: c.east}), "east")
				if exit.Code(err) != c.code {
					t.Errorf("the error is %v, want exit code %d", err, c.code)
				}
			})
		})
	}
}

// TestAnotherDescriptionKeepsWhatIsNotGiven: only the flags of the command line change what a
// cluster is described by.
func TestAnotherDescriptionKeepsWhatIsNotGiven(t *testing.T) {
	t.Parallel()
	known := query.ClusterStatus{Name: "east", Labels: map[string]string{"tier": "spot"}, Cost: quota.Cost{"cpu": 1000}, Queues: []string{"a"}, Flavors: []string{"spot"}}
	for name, c := range map[string]struct {
		arguments []string
		want      quota.Cluster
	}{
		"nothing": {nil, quota.Cluster{Name: "east", Labels: known.Labels, Cost: known.Cost, Queues: known.Queues, Flavors: known.Flavors}},
		"labels":  {[]string{"--labels", "zone=a"}, quota.Cluster{Name: "east", Labels: map[string]string{"zone": "a"}, Cost: known.Cost, Queues: known.Queues, Flavors: known.Flavors}},
		"a price": {[]string{"--cost-per-hour", "cpu=2"}, quota.Cluster{Name: "east", Labels: known.Labels, Cost: quota.Cost{"cpu": 2000}, Queues: known.Queues, Flavors: known.Flavors}},
		"queues":  {[]string{"--queues", "b"}, quota.Cluster{Name: "east", Labels: known.Labels, Cost: known.Cost, Queues: []string{"b"}, Flavors: known.Flavors}},
		"flavors": {[]string{"--flavors", "reserved,new"}, quota.Cluster{Name: "east", Labels: known.Labels, Cost: known.Cost, Queues: known.Queues, Flavors: []string{"reserved", "new"}}},
		"emptied": {[]string{"--labels", "", "--cost-per-hour", "", "--queues", "", "--flavors", ""}, quota.Cluster{Name: "east"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, cmd := &clusterManager{east: known}, joinCommand(nil)
			var o joinOptions
			if err := cmd.ParseFlags(c.arguments); err != nil {
				t.Fatal(err)
			}
			o.labels, _ = cmd.Flags().GetStringToString("labels")
			o.cost, _ = cmd.Flags().GetStringToString("cost-per-hour")
			o.queues, _ = cmd.Flags().GetStringSlice("queues")
			o.flavors, _ = cmd.Flags().GetStringSlice("flavors")
			described, err := o.description("east")
			if err == nil {
				_, err = describeCluster(t.Context(), query.NewClientOver(m), described, cmd.Flags().Changed)
			}
			if err != nil || len(m.changed) != 1 || len(m.changed[0].Apply) != 1 {
				t.Fatalf("asked is %+v, %v", m.changed, err)
			}
			object, err := kueue.ParseOne(m.changed[0].Apply[0])
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, object.Policy.Clusters[0]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestAClusterThatHasLeftIsNotCordoned: an order to cordon, or its end, would undo the leave.
func TestAClusterThatHasLeftIsNotCordoned(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]query.HoldRequest{"cordon": {Cluster: "east"}, "drain": {Cluster: "east", Drain: true}, "uncordon": {Cluster: "east", Resume: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &clusterManager{east: query.ClusterStatus{Name: "east", Cordon: cordonOf(true, false)}}
			err := (&clusterOptions{}).changeIn(t.Context(), query.NewClientOver(m), &cobra.Command{Use: name}, r)
			if exit.Code(err) != exit.Rejected || !strings.Contains(err.Error(), "`muster cluster join east` has it back") || len(m.changed) > 0 {
				t.Errorf("the error is %v after %d orders", err, len(m.changed))
			}
		})
	}
}
