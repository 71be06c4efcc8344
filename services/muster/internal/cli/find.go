package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/services/internal/client/exit"
)

// thereIsQueue distinguishes an empty queue from none.
func thereIsQueue(ctx context.Context, client *query.Client, name string) error {
	answer, err := client.Queues(ctx)
	if err == nil && len(query.Named(answer.Queues, name, "")) == 0 {
		err = noQueue(answer.Queues, name, "")
	}
	return err
}

// findQueue returns the queue of a name, in a namespace if one is given. Queues of one name in
// several namespaces are different ones.
func findQueue(queues []query.Queue, name, namespace string) (query.Queue, error) {
	found := query.Named(queues, name, namespace)
	switch len(found) {
	case 0:
		return query.Queue{}, noQueue(queues, name, namespace)
	case 1:
		return found[0], nil
	}
	return query.Queue{}, exit.Usagef("%q is the name of queues in namespaces %s; choose one with --namespace",
		name, strings.Join(query.NamespacesOf(found), ", "))
}

func noQueue(queues []query.Queue, name, namespace string) error {
	if of := query.Named(queues, name, ""); namespace != "" && len(of) > 0 {
		return exit.NotFoundf("there is no queue %q in namespace %q; there is one in %s", name, namespace, strings.Join(query.NamespacesOf(of), ", "))
	}
	return exit.NotFoundf("there is no queue %q; there are %s", name, strings.Join(queueNames(queues), ", "))
}

// queueNames returns the names of queues, each once.
func queueNames(queues []query.Queue) (names []string) {
	for _, q := range queues {
		names = append(names, q.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// findNode returns the node of a name, or of "cluster/name".
func findNode(nodes []query.Node, name string) (query.Node, error) {
	var found []query.Node
	var clusters []string
	for _, n := range nodes {
		if n.Name == name || n.Cluster+"/"+n.Name == name {
			found = append(found, n)
			clusters = append(clusters, n.Cluster)
		}
	}
	switch len(found) {
	case 0:
		return query.Node{}, exit.NotFoundf("there is no node %q; `muster get nodes` lists them", name)
	case 1:
		return found[0], nil
	}
	return query.Node{}, exit.Usagef("%q is the name of nodes in clusters %s; give it as %s",
		name, strings.Join(clusters, ", "), fmt.Sprintf("%s/%s", clusters[0], name))
}
