// Package kueue reads Kueue's manifests as policy of Muster: ResourceFlavor,
// ClusterQueue, Cohort, LocalQueue, WorkloadPriorityClass, AdmissionCheck,
// ProvisioningRequestConfig and Topology, of v1beta1 and v1beta2, so that those of a cluster that runs Kueue work unmodified. What
// Muster does not do is refused; what it does not need is named and left out.
// QueueHold, ClusterQueueHold, Cluster, ClusterCordon, Reservation, Budget and BudgetHold are kinds of Muster's own
// beside them.
//
// What the policy means, and whether it is valid, is package quota's. The package
// is pure.
package kueue

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/policyfile/strictyaml"
	"muster.dev/muster/pkg/spec/fault"
)

// group is the API group of Kueue's manifests, ownGroup that of Muster's own kind.
const (
	group    = "kueue.x-k8s.io/"
	ownGroup = "muster.dev/"
)

// QueueHold is the kind of an operator's hold of a queue. It is Muster's own: applied,
// stored and deleted as Kueue's kinds are, and of no cluster.
const QueueHold = "QueueHold"

// ClusterQueueHold is the kind of an operator's hold of a ClusterQueue.
const ClusterQueueHold = "ClusterQueueHold"

// Cluster is the kind of the description of a cluster, ClusterCordon that of an operator's
// order to admit nothing there.
const (
	Cluster       = "Cluster"
	ClusterCordon = "ClusterCordon"
)

// Reservation is the kind of a reservation of nodes.
const Reservation = "Reservation"

// Budget is the kind of a budget of a queue, BudgetHold that of the hold of a queue whose budget
// is used up, which queue-manager makes.
const (
	Budget     = "Budget"
	BudgetHold = "BudgetHold"
)

// IsHold reports whether a kind is that of an operator's hold of a queue or order about a
// cluster, which no cluster has as an object.
func IsHold(kind string) bool {
	return isOwn(kind) && kind != Cluster && kind != Reservation && kind != Budget
}

// isOwn reports whether a kind is Muster's own.
func isOwn(kind string) bool {
	return kind == QueueHold || kind == ClusterQueueHold || kind == Cluster || kind == ClusterCordon || kind == Reservation || kind == Budget || kind == BudgetHold
}

// groupOf returns the API group of a kind and its versions.
func groupOf(kind string) (name string, versions []string) {
	if isOwn(kind) {
		return ownGroup, []string{"v1beta1"}
	}
	return group, []string{"v1alpha1", "v1beta1", "v1beta2"}
}

// text is a field of an object that is a text; empty when there is none.
func text(n *yaml.Node, path ...string) string {
	for _, name := range path {
		if n = strictyaml.Field(n, name); n == nil {
			return ""
		}
	}
	if n.Kind != yaml.ScalarNode {
		return ""
	}
	return n.Value
}

// readPolicy reads what a document of a known group and name means.
func (o *Object) readPolicy(document *yaml.Node) fault.List {
	if faults := o.readSpec(document); len(faults) > 0 {
		return faults
	}
	return o.decodeSpec(document)
}

// refuse returns one fault of a document.
func (o *Object) refuse(document *yaml.Node, field, format string, args ...any) fault.List {
	return fault.List{{Line: strictyaml.Line(document, field), Path: o.origin.name + ": " + field, Text: fmt.Sprintf(format, args...)}}
}

// readSpec takes a copy of the spec of a document, which may be changed before it is decoded.
func (o *Object) readSpec(document *yaml.Node) fault.List {
	spec := &yaml.Node{Kind: yaml.MappingNode, Line: document.Line}
	if written := strictyaml.Field(document, "spec"); written != nil && written.Kind == yaml.MappingNode {
		*spec = *written
		spec.Content = slices.Clone(written.Content)
	} else if written != nil && written.ShortTag() != "!!null" {
		return o.refuse(document, "spec", "want an object")
	}
	for _, field := range []string{"name", "namespace"} {
		if strictyaml.Field(spec, field) != nil {
			return o.refuse(document, "spec."+field, "there is no such field; the %s is in metadata", field)
		}
	}
	if text(spec, "stopPolicy") == quota.Deleting {
		return o.refuse(document, "spec.stopPolicy", "%q: want one of %s, %s, %s; delete the object to delete it", quota.Deleting, quota.StopNone, quota.Hold, quota.HoldAndDrain)
	}
	o.origin.node = spec
	return nil
}

// decodeSpec decodes the spec by the kind of the object.
func (o *Object) decodeSpec(document *yaml.Node) fault.List {
	spec, c := o.origin.node, &o.Policy
	switch o.Kind {
	case "ResourceFlavor":
		if faults := o.readCost(); len(faults) > 0 {
			return faults
		}
		return decodeInto(o.origin, &c.Flavors, func(f *quota.Flavor) { f.Name = o.Name })
	case "ClusterQueue":
		o.rename("cohort", "cohortName", "v1alpha1", "v1beta1")
		return decodeInto(o.origin, &c.ClusterQueues, func(q *quota.ClusterQueue) { q.Name, q.StopPolicy = o.Name, o.stopPolicy(q.StopPolicy) })
	case "Cohort":
		o.rename("parent", "parentName", "v1alpha1")
		return decodeInto(o.origin, &c.Cohorts, func(co *quota.Cohort) { co.Name = o.Name })
	case "LocalQueue":
		return decodeInto(o.origin, &c.LocalQueues, func(l *quota.LocalQueue) {
			l.Name, l.Namespace, l.StopPolicy = o.Name, o.Namespace, o.stopPolicy(l.StopPolicy)
		})
	case "WorkloadPriorityClass": // it has no spec
		spec.Content = nil
		for i := 0; i+1 < len(document.Content); i += 2 {
			if key := document.Content[i]; key.Value == "value" || key.Value == "description" {
				spec.Content = append(spec.Content, key, document.Content[i+1])
			}
		}
		return decodeInto(o.origin, &c.Priorities, func(p *quota.PriorityClass) { p.Name = o.Name })
	case QueueHold:
		return decodeInto(o.origin, &c.Holds, func(h *quota.QueueStop) { h.Namespace, h.Name, h.Since = o.Namespace, o.Name, h.Since.UTC() })
	case ClusterQueueHold:
		return decodeInto(o.origin, &c.ClusterQueueHolds, func(h *quota.QueueStop) { h.Name, h.Since = o.Name, h.Since.UTC() })
	case Cluster:
		return decodeInto(o.origin, &c.Clusters, func(cl *quota.Cluster) { cl.Name = o.Name })
	case ClusterCordon:
		return decodeInto(o.origin, &c.ClusterCordons, func(cc *quota.ClusterCordon) { cc.Name, cc.Since = o.Name, cc.Since.UTC() })
	case Reservation:
		return decodeInto(o.origin, &c.Reservations, func(r *quota.Reservation) {
			r.Name, r.From, r.Until, r.Since = o.Name, r.From.UTC(), r.Until.UTC(), r.Since.UTC()
		})
	case Budget:
		return decodeInto(o.origin, &c.Budgets, func(b *quota.Budget) { b.Name = o.Name })
	case BudgetHold:
		return decodeInto(o.origin, &c.BudgetHolds, func(h *quota.BudgetStop) { h.Name, h.Since, h.Until = o.Name, h.Since.UTC(), h.Until.UTC() })
	case "AdmissionCheck":
		o.drop("retryDelayMinutes", "it has no effect in Kueue either")
		return decodeInto(o.origin, &c.AdmissionChecks, func(a *quota.AdmissionCheck) { a.Name = o.Name })
	case "ProvisioningRequestConfig":
		return decodeInto(o.origin, &c.ProvisioningConfigs, func(p *quota.ProvisioningConfig) { p.Name = o.Name })
	case "MultiKueueConfig", "MultiKueueCluster":
		o.Notes = append(o.Notes, o.origin.name+" does nothing: Muster chooses among its clusters by itself")
		return nil
	case "Topology":
		if faults := decodeInto(o.origin, &c.Topologies, func(t *quota.Topology) { t.Name = o.Name }); len(faults) > 0 {
			return faults
		}
		return Locate([]Object{*o}, c.Validate()) // an earlier version has stored any
	}
	return o.refuse(document, "kind", "is not known; want one of %s", strings.Join(kinds, ", "))
}

// stopPolicy is that of a manifest, unless the object is being deleted: then nothing is
// admitted, and it may still be drained.
func (o *Object) stopPolicy(written string) string {
	if o.Deleted == "" || written == quota.HoldAndDrain {
		return written
	}
	return quota.Deleting
}

// rename gives a field its present name. A new object may use the former one only in the
// versions that have it, and not beside the present one.
func (o *Object) rename(old, name string, versions ...string) {
	spec := o.origin.node
	i := 0
	for i < len(spec.Content) && spec.Content[i].Value != old {
		i += 2 // a key and its value
	}
	if i >= len(spec.Content) {
		return
	}
	refuse := func(format string, args ...any) {
		o.former = append(o.former, fault.Fault{
			Line: strictyaml.Line(o.origin.document, "spec."+old), Path: o.origin.name + ": spec." + old, Text: fmt.Sprintf(format, args...),
		})
	}
	version := strings.TrimPrefix(text(o.origin.document, "apiVersion"), group)
	switch {
	case strictyaml.Field(spec, name) != nil:
		refuse("is the former name of %s, which is there, too; leave it out", name)
		spec.Content = slices.Delete(spec.Content, i, i+2)
		return
	case !slices.Contains(versions, version):
		refuse("there is no such field in %s; want %s", version, name)
	}
	key := *spec.Content[i]
	key.Value = name
	spec.Content[i] = &key
}

// drop takes fields out that do nothing; pairs are a field and why.
func (o *Object) drop(pairs ...string) {
	spec := o.origin.node
	for pair := range slices.Chunk(pairs, 2) {
		for i := 0; i+1 < len(spec.Content); i += 2 {
			if spec.Content[i].Value != pair[0] {
				continue
			}
			value := spec.Content[i+1]
			spec.Content = slices.Delete(spec.Content, i, i+2)
			if value.Kind != yaml.MappingNode || len(value.Content) > 0 { // an empty selector asks for nothing
				o.Notes = append(o.Notes, fmt.Sprintf("%s: spec.%s does nothing: %s", o.origin.name, pair[0], pair[1]))
			}
			break
		}
	}
}

// decodeInto decodes a part of a document as package quota writes it.
func decodeInto[T any](o origin, into *[]T, complete func(*T)) fault.List {
	var value T
	if err := strictyaml.Decode(o.node, "", &value); err != nil {
		var faults fault.List
		for _, f := range fault.Of(err) {
			faults = append(faults, o.locate(f))
		}
		return faults
	}
	complete(&value)
	*into = append(*into, value)
	return nil
}
