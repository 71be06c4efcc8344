// Package settings combines the configuration of queue-manager from the queues file that it
// was started with and the objects that were applied since.
//
//	queues file ---------------+--> valid as a whole? --> configuration of the state
//	applied objects (store) ---+
//	change of a client --------+
//
// The file has precedence: an applied object of the same kind and name is kept, but does not
// count. A change of the applied objects is checked as a whole. It is refused as a whole when
// the result would not be valid, or would take a queue away from workloads that are in it.
//
// The package is pure. It is not for storing the objects (package store).
package settings

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/policyfile/kueue"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// Settings are queues and policy as they count.
type Settings = state.Settings

// File is what a queue-manager was started with.
type File struct {
	Settings
	// BuiltIn: there was no file. The namespaces of a built-in queue are extended
	// by LocalQueues of its name; those that a file lists are all there are.
	BuiltIn bool
}

// Has reports whether the file has any of the objects.
func (f File) Has(keys map[kueue.Key]bool) bool {
	for key := range kueue.Keys(f.Policy) {
		if keys[key] {
			return true
		}
	}
	return false
}

// Applied is an object that was applied at run time.
type Applied struct {
	kueue.Object
	// Origin is the cluster that has the object; empty when it was applied by `muster apply`.
	Origin string
	// Version of the ledger that changed it last.
	Version int64
	// Unread is why this version of Muster cannot read the manifest, which may be of a later
	// one; nil when it can. The content of such an object is not known.
	Unread error
}

// Set is all applied objects.
type Set map[kueue.Key]Applied

// Sorted returns the objects by kind, namespace and name, those that others name
// first.
func (s Set) Sorted() []Applied {
	var sorted []Applied
	for _, a := range s {
		sorted = append(sorted, a)
	}
	slices.SortFunc(sorted, func(a, b Applied) int { return compareKeys(a.Key, b.Key) })
	return sorted
}

// Unread is why some of the objects cannot be read; nil when all can.
func (s Set) Unread() error {
	var faults []error
	for _, a := range s.Sorted() {
		if a.Unread != nil {
			faults = append(faults, fmt.Errorf("%s was applied, and this version cannot read it: %w; delete it, or apply it again", a.Key, a.Unread))
		}
	}
	return errors.Join(faults...)
}

func compareKeys(a, b kueue.Key) int {
	kinds := kueue.Kinds()
	return cmp.Or(cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind)), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// Combine returns what counts of the file and the applied objects, and the keys
// of the objects that do not count because of the file.
func (f File) Combine(applied Set) (Settings, []kueue.Key, error) {
	own := kueue.Keys(f.Policy)
	all := f.Settings
	var overridden []kueue.Key
	for _, a := range applied.Sorted() {
		if own[a.Key] {
			overridden = append(overridden, a.Key)
			continue
		}
		all.Policy = kueue.Concat(all.Policy, a.Policy)
	}
	queues, err := f.queues(all.Policy, own)
	if err != nil {
		return Settings{}, nil, err
	}
	all.Queues = queues
	if err := all.Policy.Validate(); err != nil {
		return Settings{}, nil, kueue.Name(all.Policy, err)
	}
	return all, overridden, nil
}

// queues are those of the file and those that applied LocalQueues make.
func (f File) queues(policy quota.Config, own map[kueue.Key]bool) ([]state.Queue, error) {
	queues := slices.Clone(f.Queues)
	strategies := map[string]string{}
	for _, q := range policy.ClusterQueues {
		strategies[q.Name] = q.Strategy
	}
	var faults []error
	for _, l := range policy.LocalQueues {
		if own[kueue.Key{Kind: "LocalQueue", Namespace: l.Namespace, Name: l.Name}] {
			continue
		}
		i := slices.IndexFunc(queues, func(q state.Queue) bool { return q.Name == l.Name })
		listed := i >= 0 && i < len(f.Queues)
		switch {
		case !workload.ValidName(l.Name):
			faults = append(faults, fmt.Errorf("localQueue %q of namespace %q: want a name of at most 63 lower-case letters, digits and dashes", l.Name, l.Namespace))
		case i < 0:
			queues = append(queues, state.Queue{Name: l.Name, Namespaces: []string{l.Namespace}, Strategy: cmp.Or(strategies[l.ClusterQueue], quota.BestEffortFIFO)})
		case slices.Contains(queues[i].Namespaces, l.Namespace):
		case listed && !f.BuiltIn:
			faults = append(faults, fmt.Errorf("localQueue %q of namespace %q: queue-manager's queues file has a queue of this name, for the namespaces %q only; add the namespace there, or choose another name",
				l.Name, l.Namespace, queues[i].Namespaces))
		default:
			queues[i].Namespaces = append(slices.Clone(queues[i].Namespaces), l.Namespace)
		}
	}
	return queues, errors.Join(faults...)
}
