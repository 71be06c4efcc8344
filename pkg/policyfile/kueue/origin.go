package kueue

import (
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/policyfile/strictyaml"
	"muster.dev/muster/pkg/spec/fault"
)

// origin is the part of a document that a policy is read from, and how a message
// calls it.
type origin struct {
	document    *yaml.Node
	node        *yaml.Node
	name, field string // such as `ClusterQueue "a"`, and spec
}

// at is a path below the part, as it is in the document.
func (o origin) at(path string) string {
	if path == "name" || path == "namespace" {
		return "metadata." + path
	}
	return fault.Below(o.field, path)
}

// locate puts a fault of the part at its place in the file.
func (o origin) locate(f fault.Fault) fault.Fault {
	at := o.at(f.Path)
	if f.Line == 0 {
		if strings.HasPrefix(at, "metadata.") {
			f.Line = strictyaml.Line(o.document, at)
		} else {
			f.Line = strictyaml.Line(o.node, f.Path)
		}
	}
	f.Path = o.name + ": " + at
	return f
}

// inPolicy is the path of an element of a policy, and the rest of a path.
var inPolicy = regexp.MustCompile(`^([A-Za-z]+\[[0-9]+\])\.?(.*)$`)

// Locate returns faults of the merged policy of objects at their places in the
// file.
func Locate(objects []Object, err error) fault.List {
	origins, seen := map[string]origin{}, map[string]int{}
	for _, o := range objects {
		for path := range elements(o.Policy) { // one at most
			list := strings.TrimSuffix(path, "[0]")
			origins[fault.Index(list, seen[list])] = o.origin
			seen[list]++
		}
	}
	return replace(origins, err)
}

// Name returns faults of a policy with the names of its objects where they are in
// its lists, for policies that are of no file.
func Name(policy quota.Config, err error) fault.List {
	origins := map[string]origin{}
	for path, key := range elements(policy) {
		name := key.called()
		if key.Namespace != "" {
			name += fmt.Sprintf(" of namespace %q", key.Namespace)
		}
		origins[path] = origin{document: &yaml.Node{}, node: &yaml.Node{}, name: name, field: fieldOf(key.Kind)}
	}
	return replace(origins, err)
}

func replace(origins map[string]origin, err error) fault.List {
	if err == nil {
		return nil
	}
	var faults fault.List
	for _, f := range fault.Of(err) {
		if parts := inPolicy.FindStringSubmatch(f.Path); parts != nil {
			if o, known := origins[parts[1]]; known {
				f.Path = parts[2]
				f = o.locate(f)
			}
		}
		faults = append(faults, f)
	}
	return faults
}

// fieldOf is where a kind has its meaning; a priority class has it at the top.
func fieldOf(kind string) string {
	if kind == "WorkloadPriorityClass" {
		return ""
	}
	return "spec"
}

// elements names the objects of a policy by their paths in it.
func elements(policy quota.Config) map[string]Key {
	keys := map[string]Key{}
	for i, o := range policy.Flavors {
		keys[fault.Index("resourceFlavors", i)] = Key{Kind: "ResourceFlavor", Name: o.Name}
	}
	for i, o := range policy.Cohorts {
		keys[fault.Index("cohorts", i)] = Key{Kind: "Cohort", Name: o.Name}
	}
	for i, o := range policy.ClusterQueues {
		keys[fault.Index("clusterQueues", i)] = Key{Kind: "ClusterQueue", Name: o.Name}
	}
	for i, o := range policy.LocalQueues {
		keys[fault.Index("localQueues", i)] = Key{Kind: "LocalQueue", Namespace: o.Namespace, Name: o.Name}
	}
	for i, o := range policy.Priorities {
		keys[fault.Index("workloadPriorityClasses", i)] = Key{Kind: "WorkloadPriorityClass", Name: o.Name}
	}
	for i, o := range policy.AdmissionChecks {
		keys[fault.Index("admissionChecks", i)] = Key{Kind: "AdmissionCheck", Name: o.Name}
	}
	for i, o := range policy.ProvisioningConfigs {
		keys[fault.Index("provisioningRequestConfigs", i)] = Key{Kind: "ProvisioningRequestConfig", Name: o.Name}
	}
	for i, o := range policy.Topologies {
		keys[fault.Index("topologies", i)] = Key{Kind: "Topology", Name: o.Name}
	}
	for i, o := range policy.Holds {
		keys[fault.Index("queueHolds", i)] = Key{Kind: QueueHold, Namespace: o.Namespace, Name: o.Name}
	}
	for i, o := range policy.ClusterQueueHolds {
		keys[fault.Index("clusterQueueHolds", i)] = Key{Kind: ClusterQueueHold, Name: o.Name}
	}
	for i, o := range policy.Clusters {
		keys[fault.Index("clusters", i)] = Key{Kind: Cluster, Name: o.Name}
	}
	for i, o := range policy.ClusterCordons {
		keys[fault.Index("clusterCordons", i)] = Key{Kind: ClusterCordon, Name: o.Name}
	}
	for i := range policy.Reservations {
		keys[fault.Index("reservations", i)] = Key{Kind: Reservation, Name: policy.Reservations[i].Name}
	}
	for i, o := range policy.Budgets {
		keys[fault.Index("budgets", i)] = Key{Kind: Budget, Name: o.Name}
	}
	for i, o := range policy.BudgetHolds {
		keys[fault.Index("budgetHolds", i)] = Key{Kind: BudgetHold, Name: o.Name}
	}
	return keys
}
