package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/policyfile/kueue"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/manifest"
	"muster.dev/muster/services/internal/client/output"
	"muster.dev/muster/services/muster/examples"
)

// The pool of the story, and the queue of its example.
const (
	pool      = "l4"
	userQueue = "user-queue"
)

// playProvisioning runs the story of a job on a pool of no nodes.
func (s *story) playProvisioning(ctx context.Context, o Options) error {
	s.queue = userQueue
	if err := s.introducePool(ctx, o); err != nil {
		return err
	}
	s.report.step("A RayJob needs a GPU. It waits, and asks for a node.")
	content, err := examples.Read(examples.TextClassifier)
	if err != nil {
		return err
	}
	job, err := s.submit(ctx, manifest.Split(content)[0])
	if err != nil {
		return err
	}
	if err := s.expectAsking(ctx, job); err != nil {
		return err
	}

	s.report.step("The provider gets nodes: one comes, for the whole gang, and the job runs on it.")
	if err := o.Stack.NodePool(ctx, "set", pool, "--stock", "9"); err != nil {
		return err
	}
	if err := s.expectOnNewNodes(ctx, job); err != nil {
		return err
	}

	s.report.step("The job ends. Nothing is left of the request, and the pool is empty again.")
	if err := s.expect(ctx, job, "has succeeded", in(workload.Succeeded)); err != nil {
		return err
	}
	return s.expectNoNodes(ctx, job)
}

// introducePool shows the nodes, adds the pool and applies the queue.
func (s *story) introducePool(ctx context.Context, o Options) error {
	answer, err := s.awaitNodes(ctx)
	if err != nil {
		return err
	}
	_, gpus := free(answer.Nodes, gpu)
	s.report.step("Muster sees %d node, without a GPU, and a pool of no nodes is ready to grow.", len(answer.Nodes))
	if err := output.Nodes(answer.Nodes, output.Text, time.Now()).Write(s.report.w, "   "); err != nil {
		return err
	}
	err = o.Stack.NodePool(ctx, "add", pool, "--max", "9", "--stock", "0", "--delay", "2s", "--idle", "2s",
		"--pattern", pool+"-{0}", "--resource", "cpu=16", "--resource", "memory=64Gi", "--resource", string(gpu)+"=1")
	if err != nil {
		return err
	}
	s.report.note("pool %s: nodes of 1 GPU, 0 to 9 of them; the provider has none in stock now", pool)
	s.report.check(gpus == 0, "no node has a GPU")
	content, err := examples.Read(examples.KueueResources)
	if err != nil {
		return err
	}
	objects, _, err := kueue.ParseFile(content)
	if err != nil {
		return fmt.Errorf("read example %q: %w", examples.KueueResources, err)
	}
	var apply []json.RawMessage
	for _, object := range objects {
		apply = append(apply, object.Manifest)
	}
	if _, err := s.queries.Configure(ctx, "", query.ConfigureRequest{Apply: apply}); err != nil {
		return fmt.Errorf("apply example %q: %w", examples.KueueResources, err)
	}
	s.report.note("applied %s: ClusterQueue cluster-queue asks for nodes by the AdmissionCheck rayjob-gpu", examples.KueueResources)
	return nil
}

// expectAsking waits until the autoscaler has accepted the request of the gang, and checks
// that there is nothing of the gang meanwhile.
func (s *story) expectAsking(ctx context.Context, g *gang) error {
	err := s.expect(ctx, g, "is queued: nodes are asked for", func(r workload.Record) bool {
		return r.Phase == workload.Queued && r.Reason != nil && r.Reason.Kind == workload.ReasonProvisioning
	})
	if err != nil {
		return err
	}
	s.report.note("%s", g.record.Reason.Message)
	seen, err := s.observer.awaitRequest(ctx, g.record.Workload, s.patience, func(c conditions) bool {
		return c.accepted == "True" && c.provisioned == "False"
	})
	if err != nil {
		return err
	}
	if err := s.requestTable(seen); err != nil {
		return err
	}
	s.report.check(len(seen) == 1 && seen[0].accepted == "True" && seen[0].provisioned == "False",
		"there is one ProvisioningRequest, accepted and not provisioned")
	nodes, err := s.observer.poolNodes(ctx)
	if err != nil {
		return err
	}
	s.report.check(len(nodes) == 0, "no node has come for a part of the gang: the pool has %d", len(nodes))
	return s.expectNothing(ctx, g)
}

// expectOnNewNodes waits until the gang runs, and checks that it runs on nodes of the pool.
func (s *story) expectOnNewNodes(ctx context.Context, g *gang) error {
	seen, err := s.observer.awaitRequest(ctx, g.record.Workload, s.patience, func(c conditions) bool { return c.provisioned == "True" })
	if err != nil {
		return err
	}
	if err := s.requestTable(seen); err != nil {
		return err
	}
	s.report.check(len(seen) == 1 && seen[0].provisioned == "True", "the request is provisioned")
	if err := s.expect(ctx, g, "is running", in(workload.Running)); err != nil {
		return err
	}
	nodes, err := s.observer.poolNodes(ctx)
	if err != nil {
		return err
	}
	s.report.check(len(nodes) == 1, "the pool has one node: %q", nodes)
	pods, err := s.observer.podsOf(ctx, g.record.Workload)
	if err != nil {
		return err
	}
	consuming := 0
	for i := range pods {
		if pods[i].Annotations[consumes] != "" {
			consuming++
			s.report.check(len(seen) == 1 && pods[i].Annotations[consumes] == seen[0].name && len(nodes) == 1 && pods[i].Spec.NodeName == nodes[0],
				"pod %s is on %s and names the request", pods[i].Name, pods[i].Spec.NodeName)
		}
	}
	s.report.check(consuming == 1, "%d pod was asked for", consuming)
	return nil
}

// expectNoNodes waits until the pool is empty and no request is left.
func (s *story) expectNoNodes(ctx context.Context, g *gang) error {
	left, err := s.observer.awaitNoNodes(ctx, s.patience)
	if err != nil {
		return err
	}
	s.report.check(len(left) == 0, "the pool has no nodes: %q", left)
	seen, err := s.observer.requestsOf(ctx, g.record.Workload)
	if err != nil {
		return err
	}
	s.report.check(len(seen) == 0, "there is no ProvisioningRequest: %d", len(seen))
	pods, err := s.observer.podsOf(ctx, g.record.Workload)
	if err != nil {
		return err
	}
	running := 0
	for i := range pods {
		if phase := pods[i].Status.Phase; phase != corev1.PodSucceeded && phase != corev1.PodFailed {
			running++
		}
	}
	s.report.check(running == 0, "no pod of %s runs", g.record.Name)
	return nil
}
