package cli

import (
	"context"
	"fmt"
	"strings"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/services/internal/client/exit"
)

// thereIsQueue tells an empty queue from none.
func thereIsQueue(ctx context.Context, client *query.Client, name string) error {
	answer, err := client.Queues(ctx)
	if err == nil {
		_, err = findQueue(answer.Queues, name)
	}
	return err
}

// findQueue returns the queue of a name.
func findQueue(queues []query.Queue, name string) (query.Queue, error) {
	var names []string
	for _, q := range queues {
		if q.Name == name {
			return q, nil
		}
		names = append(names, q.Name)
	}
	return query.Queue{}, exit.NotFoundf("there is no queue %q; there are %s", name, strings.Join(names, ", "))
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
