package page

import (
	"net/url"
	"strings"

	"muster.dev/muster/pkg/spec/workload"
)

// rangeMark is between the first and the last of several nodes.
const rangeMark = " to "

func cutRange(name string) (first, last string, is bool) { return strings.Cut(name, rangeMark) }

// DeadLettersLink is the page of messages that could not be processed.
const DeadLettersLink = "/dead-letters"

// Each kind of page has one link, in which names are escaped.

// NodeLink is the page of a node.
func NodeLink(cluster, name string) string {
	return "/nodes/" + url.PathEscape(cluster) + "/" + url.PathEscape(name)
}

func nodesFrom(cluster, first string) string {
	return "/nodes?" + url.Values{"from": {cluster + "/" + first}}.Encode()
}

// WorkloadLink is the page of a workload.
func WorkloadLink(id workload.ID) string { return "/workloads/" + url.PathEscape(string(id)) }

// QueueLink is the page of a queue; the namespace is given where several queues have its name.
func QueueLink(name, namespace string) string {
	link := "/queues/" + url.PathEscape(name)
	if namespace != "" {
		link += "?" + url.Values{"namespace": {namespace}}.Encode()
	}
	return link
}
