// Package queuesfile reads the file that names the queues and the policy between them, in
// Muster's form or as Kueue's manifests, and returns all faults of it with their lines.
// queue-manager starts with such a file, and a scenario can play it.
//
// It is not for the meaning of what it reads: the policy is package quota's, a queue is
// package state's. The package is pure.
package queuesfile

import (
	"cmp"
	"reflect"
	"slices"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/manifest/podpolicy"
	"muster.dev/muster/pkg/policyfile/kueue"
	"muster.dev/muster/pkg/policyfile/strictyaml"
	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/pkg/spec/workload"
)

// Queue is an element of the list queues.
type Queue struct {
	Name string `json:"name"`
	// Namespaces that the queue's workloads may use; the first is the default.
	Namespaces []string `json:"namespaces"`
	// Strategy is BestEffortFIFO (the default), StrictFIFO or Backfill. For a queue
	// with quota the clusterQueue of its name has it.
	Strategy string `json:"strategy,omitempty"`
	// Rules of its workloads' lives; what is not set is at its default.
	Rules workload.Rules `json:"life,omitzero"`
	// Limits are what a workload of it may ask for, at most.
	Limits workload.Limits `json:"limits,omitzero"`
	// PodPolicy is what pod templates may contain.
	PodPolicy workload.PodPolicy `json:"podPolicy,omitzero"`
	// ObjectPolicy is which objects are created for workloads.
	ObjectPolicy workload.ObjectPolicy `json:"objectPolicy,omitzero"`
	// Submitters may submit to it; without any, every submitter that NATS lets publish to it.
	Submitters []workload.Submitters `json:"submitters,omitempty"`
	// Identities bind submitters of messages to users of Kubernetes.
	Identities []workload.Bound `json:"identities,omitempty"`
	// StrayPods is what happens with pods in its namespaces that are not of Muster:
	// count (the default), warn or evict.
	StrayPods string `json:"strayPods,omitempty"`
	// OnLostCluster is what happens with its gangs when their cluster is out of reach: stay
	// (the default) or failover.
	OnLostCluster string `json:"onLostCluster,omitempty"`
	// HomeObjects is what happens with objects made with kubectl while their own cluster has no
	// room: wait (the default) or move.
	HomeObjects string `json:"homeObjects,omitempty"`
	// PreferClusters selects the clusters that gangs prefer that prefer none themselves.
	PreferClusters workload.ClusterSelector `json:"preferClusters,omitempty"`
	// Carries are the ConfigMaps and Secrets that its gangs get copies of in other clusters.
	Carries []workload.Carried `json:"carries,omitempty"`
}

// File is a file of queues. In Kueue's manifests there are no queues; those that
// the LocalQueues make are added in either form.
type File struct {
	Queues []Queue `json:"queues,omitempty"`
	quota.Config
}

// Read reads the content of a file. notes name what was accepted and does nothing,
// or not what may have been meant. The error is a fault.List.
func Read(content []byte) (file File, notes []string, err error) {
	var faults fault.List
	if kueue.Is(content) {
		objects, skipped, err := kueue.ParseFile(content)
		if err != nil {
			return File{}, nil, err
		}
		notes = skipped
		for _, o := range objects {
			notes = append(notes, o.Notes...)
		}
		file.Config = kueue.Merge(objects)
		faults = kueue.Locate(objects, file.Validate())
	} else {
		node, err := strictyaml.Document(content)
		if err != nil {
			return File{}, nil, err
		}
		if err := strictyaml.Decode(node, "", &file); err != nil {
			return File{}, nil, err
		}
		faults = strictyaml.Locate(node, file.ValidateWritten())
	}
	file.AddLocalQueues()
	if len(file.BudgetHolds) > 0 { // it could not end them
		faults.Add("budgetHolds", "queue-manager makes and ends holds of budgets; leave them out")
	}
	if len(file.Queues) == 0 && len(faults) == 0 {
		faults.Add("queues", "is missing, and there are no localQueues; want at least one queue, such as {name: research, namespaces: [research]}")
	}
	if len(faults) > 0 {
		return File{}, nil, faults
	}
	return file, slices.Concat(notes, file.unreached(), file.neverAllowed(), file.Notes()), nil
}

// ValidateWritten is Validate, and refuses fields that a person wrote at a wrong place:
// those of the queue under life, or a strategy other than the ClusterQueue of the same name
// sets.
func (f *File) ValidateWritten() error {
	var faults fault.List
	for i, q := range f.Queues {
		path := fault.Index("queues", i)
		if !reflect.ValueOf(q.Rules.Pods).IsZero() {
			faults.Add(path+".life.podPolicy", "is no field of life; set it beside life, as %s.podPolicy", path)
		}
		if !reflect.ValueOf(q.Rules.Limits).IsZero() {
			faults.Add(path+".life.limits", "is no field of life; set it beside life, as %s.limits", path)
		}
		if len(q.Rules.Submitters) > 0 {
			faults.Add(path+".life.submitters", "is no field of life; set it beside life, as %s.submitters", path)
		}
		if !reflect.ValueOf(q.Rules.Objects).IsZero() {
			faults.Add(path+".life.objectPolicy", "is no field of life; set it beside life, as %s.objectPolicy", path)
		}
		if len(q.Rules.Identities) > 0 {
			faults.Add(path+".life.identities", "is no field of life; set it beside life, as %s.identities", path)
		}
		if q.Rules.Strays != "" {
			faults.Add(path+".life.strayPods", "is no field of life; set it beside life, as %s.strayPods", path)
		}
		if q.Rules.OnLostCluster != "" {
			faults.Add(path+".life.onLostCluster", "is no field of life; set it beside life, as %s.onLostCluster", path)
		}
		if q.Rules.HomeObjects != "" {
			faults.Add(path+".life.homeObjects", "is no field of life; set it beside life, as %s.homeObjects", path)
		}
		if len(q.Rules.Carries) > 0 {
			faults.Add(path+".life.carries", "is no field of life; set it beside life, as %s.carries", path)
		}
		if q.Rules.PreferClusters != "" {
			faults.Add(path+".life.preferClusters", "is no field of life; set it beside life, as %s.preferClusters", path)
		}
		for j, c := range f.ClusterQueues {
			if strategy := cmp.Or(c.Strategy, quota.BestEffortFIFO); c.Name == q.Name && q.Strategy != "" && q.Strategy != strategy {
				faults.Add(path+".strategy", "%q, but %s of the same name has quota and the queueingStrategy %s, which counts; set it there and leave it out here",
					q.Strategy, fault.Index("clusterQueues", j), strategy)
			}
		}
	}
	faults.Under("", f.Validate())
	return faults.Err()
}

// AddLocalQueues adds a queue for each name of a LocalQueue that none has, and lets
// all namespaces in that have a LocalQueue of the name.
func (f *File) AddLocalQueues() {
	for _, l := range f.LocalQueues {
		i := slices.IndexFunc(f.Queues, func(q Queue) bool { return q.Name == l.Name })
		switch {
		case i < 0:
			f.Queues = append(f.Queues, Queue{Name: l.Name, Namespaces: []string{l.Namespace}, Strategy: f.strategyOf(l.ClusterQueue)})
		case !slices.Contains(f.Queues[i].Namespaces, l.Namespace):
			f.Queues[i].Namespaces = append(f.Queues[i].Namespaces, l.Namespace)
		}
	}
}

// Validate returns all faults of the queues and the policy as a fault.List, and
// completes the queues: their strategies, and their rules by the pod policy.
func (f *File) Validate() error {
	var faults fault.List
	first := map[string]string{}
	for i := range f.Queues {
		q, path := &f.Queues[i], fault.Index("queues", i)
		if other, twice := first[q.Name]; twice {
			faults.Add(path+".name", "%q is the name of %s, too; want another", q.Name, other)
		} else {
			first[q.Name] = path
			validName(&faults, path+".name", q.Name)
		}
		faults.Under(path, q.validate())
	}
	for i, l := range f.LocalQueues {
		if path := fault.Index("localQueues", i); l.Name != "" && l.Namespace != "" { // else the policy reports it
			validName(&faults, path+".name", l.Name)
			validName(&faults, path+".namespace", l.Namespace)
		}
	}
	faults.Under("", f.Config.Validate())
	for i := range f.Queues {
		if q := &f.Queues[i]; q.Strategy == "" && len(faults) == 0 {
			q.Strategy = f.strategyOf(q.Name)
		}
	}
	return faults.Err()
}

// strategyOf is that of the ClusterQueue of a name.
func (f *File) strategyOf(name string) string {
	for _, c := range f.ClusterQueues {
		if c.Name == name && c.Strategy != "" {
			return c.Strategy
		}
	}
	return quota.BestEffortFIFO
}

func validName(faults *fault.List, path, name string) {
	switch {
	case name == "":
		faults.Add(path, "is missing")
	case !workload.ValidName(name):
		faults.Add(path, "%q: want lower-case letters, digits and dashes, at most 63", name)
	}
}

// validate checks what concerns the queue alone.
func (q *Queue) validate() error {
	var faults fault.List
	if len(q.Namespaces) == 0 {
		faults.Add("namespaces", "is missing; want at least one")
	}
	for i, namespace := range q.Namespaces {
		validName(&faults, fault.Index("namespaces", i), namespace)
		if slices.Index(q.Namespaces, namespace) < i {
			faults.Add(fault.Index("namespaces", i), "%q is a duplicate", namespace)
		}
	}
	if !slices.Contains([]string{"", quota.BestEffortFIFO, quota.StrictFIFO, quota.Backfill}, q.Strategy) {
		faults.Add("strategy", "%q: want %s, %s or %s", q.Strategy, quota.BestEffortFIFO, quota.StrictFIFO, quota.Backfill)
	}
	faults.Under("submitters", workload.ValidateSubmitters(q.Submitters))
	faults.Under("identities", workload.ValidateIdentities(q.Identities))
	faults.Under("objectPolicy", q.ObjectPolicy.Validate())
	faults.Under("strayPods", workload.ValidateStrays(q.StrayPods))
	faults.Under("onLostCluster", workload.ValidateOnLostCluster(q.OnLostCluster))
	faults.Under("homeObjects", workload.ValidateHomeObjects(q.HomeObjects))
	preferred, err := q.PreferClusters.Complete()
	faults.Under("preferClusters", err)
	q.PreferClusters = preferred
	faults.Under("carries", workload.ValidateCarried(q.Carries))
	q.Rules.Submitters, q.Rules.Limits = nil, workload.Limits{}
	faults.Under("life", q.Rules.Validate())
	q.Rules.Limits = q.Limits
	faults.Under("limits", q.Rules.ValidateLimits())
	faults.Under("podPolicy", podpolicy.Validate(q.PodPolicy))
	q.Rules.Pods, q.Rules.Submitters = q.PodPolicy, q.Submitters
	q.Rules.Objects, q.Rules.Identities, q.Rules.Strays = q.ObjectPolicy, q.Identities, q.StrayPods
	q.Rules.OnLostCluster, q.Rules.PreferClusters, q.Rules.Carries = q.OnLostCluster, q.PreferClusters, q.Carries
	q.Rules.HomeObjects = q.HomeObjects
	return faults.Err()
}
