package demo

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/spec/workload"
)

// consumes is the annotation by which a pod names the request that it came with.
const consumes = "autoscaling.x-k8s.io/consume-provisioning-request"

// poolSelector selects the nodes of the pool.
const poolSelector = "devcluster.muster.dev/pool=" + pool

// lookAgain is how often the cluster is read until something is there.
const lookAgain = 50 * time.Millisecond

func provisioningRequests() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "autoscaling.x-k8s.io", Version: "v1", Resource: "provisioningrequests"}
}

// conditions are what kubectl prints of a ProvisioningRequest.
type conditions struct{ name, accepted, provisioned, failed string }

// requestsOf reads the requests of a workload.
func (o *observer) requestsOf(ctx context.Context, w workload.Workload) ([]conditions, error) {
	list, err := o.objects.Resource(provisioningRequests()).Namespace(w.Namespace).List(ctx, metav1.ListOptions{LabelSelector: kube.WorkloadLabel + "=" + string(w.ID)})
	if err != nil {
		return nil, fmt.Errorf("list ProvisioningRequests in %q: %w", w.Namespace, err)
	}
	var all []conditions
	for i := range list.Items {
		c := conditions{name: list.Items[i].GetName()}
		written, _, err := unstructured.NestedSlice(list.Items[i].Object, "status", "conditions")
		if err != nil {
			return nil, fmt.Errorf("read ProvisioningRequest %q: %w", c.name, err)
		}
		for _, item := range written {
			condition, _ := item.(map[string]any)
			status, _ := condition["status"].(string)
			switch condition["type"] {
			case "Accepted":
				c.accepted = status
			case "Provisioned":
				c.provisioned = status
			case "Failed":
				c.failed = status
			}
		}
		all = append(all, c)
	}
	return all, nil
}

// awaitRequest reads the requests of a workload until one is as wanted, or patience ends. It
// returns those that were there last.
func (o *observer) awaitRequest(ctx context.Context, w workload.Workload, patience time.Duration, wanted func(conditions) bool) (seen []conditions, err error) {
	err = poll(ctx, patience, func(ctx context.Context) (bool, error) {
		var err error
		seen, err = o.requestsOf(ctx, w)
		return len(seen) > 0 && wanted(seen[0]), err
	})
	return seen, err
}

// poolNodes names the nodes of the pool.
func (o *observer) poolNodes(ctx context.Context) ([]string, error) {
	list, err := o.pods.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: poolSelector})
	if err != nil {
		return nil, fmt.Errorf("list nodes of pool %s: %w", pool, err)
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, nil
}

// awaitNoNodes waits until the pool is empty, and returns what is left of it after patience.
func (o *observer) awaitNoNodes(ctx context.Context, patience time.Duration) (left []string, err error) {
	err = poll(ctx, patience, func(ctx context.Context) (bool, error) {
		var err error
		left, err = o.poolNodes(ctx)
		return len(left) == 0, err
	})
	return left, err
}

// poll looks until there is something to see, an error, or patience ends, which is none.
func poll(ctx context.Context, patience time.Duration, look func(context.Context) (bool, error)) error {
	deadline := time.Now().Add(patience)
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		if done, err := look(ctx); done || err != nil || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// requestTable prints requests as kubectl does.
func (s *story) requestTable(all []conditions) error {
	w := tabwriter.NewWriter(s.report.w, 0, 8, 3, ' ', 0)
	fmt.Fprintln(w, "   PROVISIONINGREQUEST\tACCEPTED\tPROVISIONED\tFAILED")
	for _, c := range all {
		fmt.Fprintf(w, "   %s\t%s\t%s\t%s\n", c.name, c.accepted, c.provisioned, c.failed)
	}
	return w.Flush()
}
