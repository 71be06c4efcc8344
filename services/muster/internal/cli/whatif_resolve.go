package cli

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/services/internal/client/exit"
)

// resolve looks up the nodes and workloads that the flags name.
func (o *whatifOptions) resolve(ctx context.Context, client *query.Client, r *query.WhatIfRequest) error {
	if len(o.nodes)+len(o.drain) > 0 {
		answer, err := client.Nodes(ctx)
		if err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(o.nodes)) {
			like, err := nodeNamed(answer.Nodes, name)
			if err != nil {
				return err
			}
			r.AddNodes = append(r.AddNodes, query.NodesLike{Like: like, Count: o.nodes[name]})
		}
		for _, name := range o.drain {
			drained, err := nodeNamed(answer.Nodes, name)
			if err != nil {
				return err
			}
			r.Drain = append(r.Drain, drained)
		}
	}
	for _, label := range slices.Sorted(maps.Keys(o.drainLabel)) {
		r.DrainAll = append(r.DrainAll, query.NodeSet{Cluster: o.drainCluster, Label: label, Value: o.drainLabel[label]})
	}
	if o.drainCluster != "" && len(o.drainLabel) == 0 {
		r.DrainAll = append(r.DrainAll, query.NodeSet{Cluster: o.drainCluster})
	}
	return o.resolveWorkloads(ctx, client, r)
}

// resolveWorkloads looks up the workloads that the flags name.
func (o *whatifOptions) resolveWorkloads(ctx context.Context, client *query.Client, r *query.WhatIfRequest) error {
	for _, name := range slices.Sorted(maps.Keys(o.priorities)) {
		priority, err := strconv.ParseInt(o.priorities[name], 10, 32)
		if err != nil {
			return exit.Usagef("--priority %s=%s: want a whole number of 32 bits", name, o.priorities[name])
		}
		record, err := findWorkload(ctx, client, name, o.namespace)
		if err != nil {
			return err
		}
		p := int32(priority)
		r.Workloads = append(r.Workloads, query.WorkloadChange{ID: record.ID, Priority: &p})
	}
	for _, name := range slices.Sorted(maps.Keys(o.moves)) {
		record, err := findWorkload(ctx, client, name, o.namespace)
		if err != nil {
			return err
		}
		r.Workloads = append(r.Workloads, query.WorkloadChange{ID: record.ID, Queue: o.moves[name]})
	}
	for _, what := range slices.Sorted(maps.Keys(o.pods)) {
		colon := strings.LastIndex(what, ":")
		if colon < 0 {
			return exit.Usagef("--pods %s=%d: want WORKLOAD:PODSET=COUNT, such as train:workers=4", what, o.pods[what])
		}
		record, err := findWorkload(ctx, client, what[:colon], o.namespace)
		if err != nil {
			return err
		}
		r.Workloads = append(r.Workloads, query.WorkloadChange{ID: record.ID, Pods: []query.PodCount{{PodSet: what[colon+1:], Count: o.pods[what]}}})
	}
	for _, other := range o.otherRequests {
		record, err := findWorkload(ctx, client, other.workload, o.namespace)
		if err != nil {
			return err
		}
		r.Workloads = append(r.Workloads, query.WorkloadChange{ID: record.ID, Requests: []query.PodRequests{other.pods}})
	}
	return nil
}

// otherRequests are what the pods of a workload request otherwise.
type otherRequests struct {
	workload string // its name or id
	pods     query.PodRequests
}

// requested reads WORKLOAD:PODSET:RESOURCE=AMOUNT,...
func requested(text string) (other otherRequests, err error) {
	parts := strings.SplitN(text, ":", 3)
	if len(parts) < 3 {
		return other, exit.Usagef("--requests %s: want WORKLOAD:PODSET:RESOURCE=AMOUNT,..., such as train:workers:nvidia.com/gpu=4", text)
	}
	other.workload, other.pods.PodSet = parts[0], parts[1]
	if other.pods.Amounts, err = query.ParseAmounts(parts[2]); err != nil {
		return other, exit.Usagef("--requests %s: %w", text, err)
	}
	return other, nil
}

// nodeNamed finds a node by NODE or CLUSTER/NODE.
func nodeNamed(nodes []query.Node, name string) (query.NodeName, error) {
	found, err := findNode(nodes, name)
	return query.NodeName{Cluster: found.Cluster, Name: found.Name}, err
}
