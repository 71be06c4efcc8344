package stack

import (
	"context"
	"fmt"

	"muster.dev/muster/pkg/local/devcluster"
)

// AddNodes adds nodes to the stack's pool, named after it, with the given
// allocatable resources, such as "nvidia.com/gpu=8".
func (s *Stack) AddNodes(ctx context.Context, group string, count int, resources ...string) error {
	return addNodes(ctx, s.options.Cluster, s.Pool, s.Pool, group, count, resources)
}

// addNodes adds nodes of a pool to a cluster, which are named after the cluster.
func addNodes(ctx context.Context, to *devcluster.Cluster, cluster, pool, group string, count int, resources []string) error {
	command := []string{
		"add", "--pattern", fmt.Sprintf("%s-%s-{0}", cluster, group), "--count", fmt.Sprint(count), "--label", poolLabel + "=" + pool,
	}
	for _, resource := range resources {
		command = append(command, "--resource", resource)
	}
	return to.Node(ctx, command...)
}

// NodeName returns the name of a node that AddNodes made.
func (s *Stack) NodeName(group string, i int) string {
	return fmt.Sprintf("%s-%s-%d", s.Pool, group, i)
}

// Node runs a node command of the dev cluster, such as "break", NAME.
func (s *Stack) Node(ctx context.Context, command ...string) error {
	return s.options.Cluster.Node(ctx, command...)
}

// NodePool runs a command on a node pool of the dev cluster, such as "add" or "set", that is
// named after the stack's pool. Nodes that the pool gets are the stack's.
func (s *Stack) NodePool(ctx context.Context, command, group string, flags ...string) error {
	name := s.Pool + "-" + group
	arguments := append([]string{command, name}, flags...)
	if command == "add" {
		arguments = append(arguments, "--pattern", name+"-{0}", "--label", poolLabel+"="+s.Pool)
	}
	return s.options.Cluster.Pool(ctx, arguments...)
}

// poolLabel marks the nodes of one stack.
const poolLabel = "test.muster.dev/pool"
