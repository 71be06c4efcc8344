package suite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
)

// research is a queue with quota, of nominalQuota GPUs; loweredQuota is less than a gang of
// the kind staying uses.
const (
	research     = "research"
	nominalQuota = 8
	loweredQuota = 2
)

// clusterQueues are the ClusterQueues of the queues file of a mixed load as manifests, with
// another nominal quota for research.
func clusterQueues(quota int) []json.RawMessage {
	var manifests []json.RawMessage
	for name, nominal := range map[string]int{research: quota, "product": nominalQuota} {
		manifests = append(manifests, json.RawMessage(fmt.Sprintf(`{
	"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": %q},
	"spec": {"namespaceSelector": {}, %s}}`, name, cohortQueue(nominal))))
	}
	return manifests
}

// setQuota applies the ClusterQueues. The same again changes nothing.
func (w *world) setQuota(ctx context.Context, quota int) error {
	_, err := query.NewClient(w.bus.Conn()).Configure(ctx, "", query.ConfigureRequest{Apply: clusterQueues(quota)})
	return err
}

// lowerQuota lowers the quota of research below what a running gang of it uses, and drains a
// node of that gang: a place of it moves, or the gang is evicted, while more is used than
// there is quota. mend returns when no gang has a place on the node any more; it gives
// quota and node back.
func (w *world) lowerQuota(t *testing.T) (mend func(context.Context) error, err error) {
	t.Helper()
	id := w.submitAs(t, staying, research)
	var node string
	w.until(t, "a gang of research runs, and has a node without its head", func() bool {
		node, err = w.nodeOfWorkers(id)
		return err == nil && node != ""
	})
	if err := w.insist(w.ctx, func(ctx context.Context) error { return w.setQuota(ctx, loweredQuota) }); err != nil {
		return nil, errors.Join(fmt.Errorf("lower the quota: %w", err), w.giveBack(w.ctx, node))
	}
	if err := w.insist(w.ctx, func(ctx context.Context) error { return w.drain(ctx, node, true) }); err != nil {
		return nil, errors.Join(fmt.Errorf("drain %s: %w", node, err), w.giveBack(w.ctx, node))
	}
	return func(ctx context.Context) error {
		left := w.insist(ctx, func(ctx context.Context) error { return w.empty(ctx, node) })
		w.logPlaces(ctx, t, id, node)
		back := w.giveBack(ctx, node)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.gangOf(id).released = true
		return errors.Join(left, back)
	}, nil
}

// giveBack ends the drain of a node and the lower quota, also when it is not known whether they
// have begun: what was answered with an error may have been done.
func (w *world) giveBack(ctx context.Context, node string) error {
	undrained := w.insist(ctx, func(ctx context.Context) error { return w.drain(ctx, node, false) })
	raised := w.insist(ctx, func(ctx context.Context) error { return w.setQuota(ctx, nominalQuota) })
	return errors.Join(undrained, raised)
}

// insist does something until it succeeds.
func (w *world) insist(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		ask, cancel := context.WithTimeout(ctx, askTimeout)
		err := do(ask)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return fmt.Errorf("not within %s: %w", patience, err)
		}
	}
}

// nodeOfWorkers returns a node on which a running gang has workers and no other pod; empty
// when the gang does not run.
func (w *world) nodeOfWorkers(id workload.ID) (string, error) {
	ctx, cancel := context.WithTimeout(w.ctx, askTimeout)
	defer cancel()
	answer, err := query.NewClient(w.bus.Conn()).Workloads(ctx, query.WorkloadsRequest{ID: id, Phases: []workload.Phase{workload.Running}})
	if err != nil || len(answer.Workloads) == 0 {
		return "", err
	}
	record := answer.Workloads[0]
	workers := map[string]bool{}
	for _, set := range record.PodSets {
		workers[set.Name] = set.Role == workload.RoleWorker
	}
	for _, placement := range record.Placements {
		if !slices.ContainsFunc(record.Placements, func(p workload.Placement) bool { return p.Node == placement.Node && !workers[p.PodSet] }) {
			return placement.Node, nil
		}
	}
	return "", nil
}

// logPlaces logs what became of the gang that had places on a drained node.
func (w *world) logPlaces(ctx context.Context, t *testing.T, id workload.ID, node string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	answer, err := query.NewClient(w.bus.Conn()).Workloads(ctx, query.WorkloadsRequest{ID: id})
	if err != nil || len(answer.Workloads) == 0 {
		t.Logf("ask for the gang that was on %s: %v", node, err)
		return
	}
	record := answer.Workloads[0]
	t.Logf("the gang that was on %s is %s in attempt %d, and has the places %v", node, record.Phase, record.Attempt, record.Placements)
}

// empty returns an error while a gang has a place on a node.
func (w *world) empty(ctx context.Context, node string) error {
	answer, err := query.NewClient(w.bus.Conn()).Workloads(ctx, query.WorkloadsRequest{Phases: livePhases()})
	if err != nil {
		return err
	}
	for _, record := range answer.Workloads {
		if slices.ContainsFunc(record.Placements, func(p workload.Placement) bool { return p.Node == node }) {
			return fmt.Errorf("%s gang %s still has a place on the drained node %s", record.Phase, record.Name, node)
		}
	}
	return nil
}

var nodes = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}

// drainTaint is what an operator sets to empty a node.
const drainTaint = "muster.dev/drain"

// drain sets the taint that empties a node, or removes it.
func (w *world) drain(ctx context.Context, name string, on bool) error {
	node, err := w.kube.Resource(nodes).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	taints, _, err := unstructured.NestedSlice(node.Object, "spec", "taints")
	if err != nil {
		return err
	}
	taints = slices.DeleteFunc(taints, func(taint any) bool {
		fields, ok := taint.(map[string]any)
		return ok && fields["key"] == drainTaint
	})
	if on {
		taints = append(taints, map[string]any{"key": drainTaint, "effect": "NoSchedule"})
	}
	if err := unstructured.SetNestedSlice(node.Object, taints, "spec", "taints"); err != nil {
		return err
	}
	_, err = w.kube.Resource(nodes).Update(ctx, node, metav1.UpdateOptions{})
	return err
}
