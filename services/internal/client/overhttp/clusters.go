package overhttp

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/policyfile/kueue"
	"muster.dev/muster/pkg/spec/resource"
)

// clusterIn returns the request for a change of the configuration that has a cluster join or
// leave, and the object that it changes.
func clusterIn(r query.ConfigureRequest) (change request, key kueue.Key, is bool) {
	if len(r.Apply) != 1 {
		return request{}, kueue.Key{}, false
	}
	object, err := kueue.ParseOne(r.Apply[0])
	if err != nil {
		return request{}, kueue.Key{}, false
	}
	change = request{path: "/v1/clusters/" + url.PathEscape(object.Name), parameters: url.Values{}}
	switch {
	case object.Kind == kueue.Cluster:
		change.method = http.MethodPut
		describe(change.parameters, object.Policy.Clusters[0])
	case object.Kind == kueue.ClusterCordon && object.Policy.ClusterCordons[0].Left:
		change.method = http.MethodDelete
		change.parameters = reason(object.Policy.ClusterCordons[0].Why)
		if object.Policy.ClusterCordons[0].Forced {
			change.parameters.Set("force", "true")
		}
	default:
		return request{}, kueue.Key{}, false
	}
	return change, object.Key, true
}

// describe writes the description of a cluster as parameters.
func describe(parameters url.Values, c quota.Cluster) {
	var labels, prices []string
	for _, key := range slices.Sorted(maps.Keys(c.Labels)) {
		labels = append(labels, key+"="+c.Labels[key])
	}
	for _, name := range slices.Sorted(maps.Keys(c.Cost)) {
		prices = append(prices, string(name)+"="+resource.Format(resource.CPU, c.Cost[name])) // thousandths, as of CPU
	}
	for name, list := range map[string][]string{"label": labels, "cost": prices, "queue": c.Queues, "flavor": c.Flavors} {
		if len(list) > 0 {
			parameters.Set(name, strings.Join(list, ","))
		}
	}
}
