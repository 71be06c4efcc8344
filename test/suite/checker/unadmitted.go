package checker

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Unadmitted lists the pods and the objects that make pods of attempts that hold no
// capacity in the ledger. What was admitted or released while the look lasts is left
// out.
func (c *Checker) Unadmitted(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*askTimeout)
	defer cancel()
	before, err := c.holding(ctx)
	if err != nil {
		return nil, err
	}
	there := map[string]attempt{} // by what is shown
	ours := metav1.ListOptions{LabelSelector: clusterLabel + "=" + c.Cluster}
	for _, resource := range []schema.GroupVersionResource{made()[0], {Version: "v1", Resource: "pods"}} {
		left, err := c.Kube.Resource(resource).Namespace(metav1.NamespaceAll).List(ctx, ours)
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", resource.Resource, err)
		}
		for _, each := range left.Items {
			if phase, _, _ := unstructured.NestedString(each.Object, "status", "phase"); phase == "Succeeded" || phase == "Failed" {
				continue
			}
			labels := each.GetLabels()
			of := attempt{labels[workloadLabel], labels[attemptLabel]}
			there[fmt.Sprintf("%s %s (workload %s, attempt %s)", resource.Resource, each.GetName(), of.workload, of.number)] = of
		}
	}
	after, err := c.holding(ctx)
	if err != nil {
		return nil, err
	}
	var found []string
	for what, of := range there {
		if !before[of] && !after[of] {
			found = append(found, what)
		}
	}
	slices.Sort(found)
	return found, nil
}

// holding returns the attempts that hold capacity in the ledger.
func (c *Checker) holding(ctx context.Context) (map[attempt]bool, error) {
	conn, err := pgx.Connect(ctx, c.DatabaseURL)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	rows, err := conn.Query(ctx, `SELECT id::text, attempt::text FROM workloads WHERE holding`)
	if err != nil {
		return nil, err
	}
	found := map[attempt]bool{}
	var of attempt
	_, err = pgx.ForEachRow(rows, []any{&of.workload, &of.number}, func() error { found[of] = true; return nil })
	return found, err
}

// Stored returns the workloads that the ledger has, live or at their end.
func (c *Checker) Stored(ctx context.Context) (map[string]bool, error) {
	conn, err := pgx.Connect(ctx, c.DatabaseURL)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	rows, err := conn.Query(ctx, `SELECT id::text FROM workloads UNION ALL SELECT id::text FROM archive`)
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	var id string
	_, err = pgx.ForEachRow(rows, []any{&id}, func() error { found[id] = true; return nil })
	return found, err
}
