package overhttp

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"muster.dev/muster/pkg/message/httpapi"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
)

// Cancel asks for the end of a workload.
func (c *Client) Cancel(ctx context.Context, id workload.ID, why string) error {
	return c.do(ctx, request{method: http.MethodDelete, path: "/v1/workloads/" + url.PathEscape(string(id)), parameters: reason(why)}, &httpapi.Cancelling{})
}

// Move asks to have a workload wait in another queue.
func (c *Client) Move(ctx context.Context, id workload.ID, queue, why string) error {
	parameters := reason(why)
	parameters.Set("queue", queue)
	return c.do(ctx, request{method: http.MethodPost, path: "/v1/workloads/" + url.PathEscape(string(id)) + "/move", parameters: parameters}, &httpapi.Moving{})
}

// Release asks to free the places of a workload by force.
func (c *Client) Release(ctx context.Context, id workload.ID, why string) error {
	parameters := url.Values{"why": {why}}
	return c.do(ctx, request{method: http.MethodPost, path: "/v1/workloads/" + url.PathEscape(string(id)) + "/release", parameters: parameters}, &httpapi.Releasing{})
}

// HoldWorkload asks to keep a workload from admission, or to resume it.
func (c *Client) HoldWorkload(ctx context.Context, id workload.ID, resume bool, why string) error {
	method := http.MethodPut
	if resume {
		method = http.MethodDelete
	}
	return c.do(ctx, request{method: method, path: "/v1/workloads/" + url.PathEscape(string(id)) + "/hold", parameters: reason(why)}, &httpapi.Changing{})
}

// Requeue asks to take a workload down and queue it again.
func (c *Client) Requeue(ctx context.Context, id workload.ID, why string) error {
	return c.do(ctx, request{method: http.MethodPost, path: "/v1/workloads/" + url.PathEscape(string(id)) + "/requeue", parameters: reason(why)}, &httpapi.Changing{})
}

// ErrUnchanged is returned where all is as asked for already, so that no event follows.
var ErrUnchanged = errors.New("nothing has changed: it is so already")

// Checkpoint reports that a workload has saved its work; without a time, now by the clock of the
// server. One that is too near to the last gets ErrUnchanged.
func (c *Client) Checkpoint(ctx context.Context, id workload.ID, at time.Time) error {
	parameters := url.Values{}
	if !at.IsZero() {
		parameters.Set("at", at.UTC().Format(time.RFC3339Nano))
	}
	var answer httpapi.Changing
	err := c.do(ctx, request{method: http.MethodPut, path: "/v1/workloads/" + url.PathEscape(string(id)) + "/checkpoint", parameters: parameters}, &answer)
	if err == nil && answer.Unchanged {
		return ErrUnchanged
	}
	return err
}

// SetPriority asks for another priority of a workload.
func (c *Client) SetPriority(ctx context.Context, id workload.ID, priority int32, why string) error {
	parameters := reason(why)
	parameters.Set("value", strconv.Itoa(int(priority)))
	return c.do(ctx, request{method: http.MethodPut, path: "/v1/workloads/" + url.PathEscape(string(id)) + "/priority", parameters: parameters}, &httpapi.Changing{})
}

// reason returns the parameters with the reason of a change.
func reason(why string) url.Values {
	parameters := url.Values{}
	if why != "" {
		parameters.Set("why", why)
	}
	return parameters
}

// CordonCluster asks to admit nothing in a cluster, to evict its workloads with drain, too, or to
// resume it.
func (c *Client) CordonCluster(ctx context.Context, cluster string, resume, drain bool, why string) error {
	method, parameters := http.MethodPut, reason(why)
	if resume {
		method, parameters = http.MethodDelete, url.Values{}
	} else if drain {
		parameters.Set("drain", "true")
	}
	return c.do(ctx, request{method: method, path: "/v1/clusters/" + url.PathEscape(cluster) + "/cordon", parameters: parameters}, &query.ClusterStatus{})
}

// HoldQueue asks to admit nothing of a queue, or to resume it: in one of its namespaces, or in
// all for an empty one.
func (c *Client) HoldQueue(ctx context.Context, queue, namespace string, resume bool, why string) error {
	method, parameters := http.MethodPut, reason(why)
	if resume {
		method, parameters = http.MethodDelete, url.Values{}
	}
	if namespace != "" {
		parameters.Set("namespace", namespace)
	} else {
		parameters.Set("allNamespaces", "true")
	}
	return c.do(ctx, request{method: method, path: "/v1/queues/" + url.PathEscape(queue) + "/hold", parameters: parameters}, &query.Queue{})
}
