package settings

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/policyfile/kueue"
	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/pkg/state"
)

// ErrRefused is wrapped by every error of Plan.
var ErrRefused = errors.New("nothing was changed")

// Place is where workloads are submitted: a queue in a namespace.
type Place = state.LocalQueueKey

// Plan is what a change comes to.
type Plan struct {
	// Set are all objects after the change.
	Set Set
	// Written and Removed are what the change does to the stored objects.
	Written []Applied
	Removed []kueue.Key
	// Settings are what counts after it.
	Settings Settings
	Outcomes []query.Configured
}

// Empty reports whether everything stays as it is.
func (p Plan) Empty() bool { return len(p.Written) == 0 && len(p.Removed) == 0 }

// Plan returns what a request comes to now. live is how many workloads are in which
// place. Every fault of the whole is in the error.
func (f File) Plan(present Set, origin string, request query.ConfigureRequest, live map[Place]int, now time.Time) (Plan, error) {
	p := Plan{Set: maps.Clone(present)}
	if p.Set == nil {
		p.Set = Set{}
	}
	var faults []error
	keys := map[kueue.Key]bool{}
	for i, manifest := range request.Apply {
		object, err := kueue.ParseOne(manifest)
		switch {
		case err != nil:
			for _, f := range fault.Of(err) {
				faults = append(faults, fmt.Errorf("object %d: %w", i+1, f))
			}
		case keys[object.Key]:
			faults = append(faults, fmt.Errorf("object %d: %s is a duplicate", i+1, object.Key))
		default:
			keys[object.Key] = true
			if bad := object.FaultsIfNew(); len(bad) > 0 {
				faults = append(faults, bad)
				continue
			}
			faults = append(faults, f.apply(&p, object, origin))
		}
	}
	for _, key := range request.Delete {
		faults = append(faults, f.remove(&p, key, origin, keys))
	}
	f.makeRoom(&p, keys, now)
	if len(p.Set) > query.MaxConfigured {
		faults = append(faults, fmt.Errorf("the change would make %d objects; at most %d are allowed; delete some first", len(p.Set), query.MaxConfigured))
	}
	if err := errors.Join(faults...); err != nil {
		return Plan{}, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	if err := p.Set.Unread(); err != nil {
		return Plan{}, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	before, _, err := f.Combine(present)
	if err != nil && present.Unread() == nil {
		return Plan{}, fmt.Errorf("what stands is not valid: %w", err)
	}
	if p.Settings, _, err = f.Combine(p.Set); err != nil {
		return Plan{}, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	if err := inUse(before, p.Settings, live); err != nil {
		return Plan{}, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return p, p.judge()
}

func (f File) apply(p *Plan, object kueue.Object, origin string) error {
	outcome := query.Created
	present, there := p.Set[object.Key]
	left := keepsLeaving(present, object)
	switch {
	case (object.Kind == kueue.Cluster || object.Kind == kueue.ClusterCordon) && origin != "":
		return fmt.Errorf("%s: only operators describe and cordon clusters, with `muster apply` and `muster cluster cordon`", object.Key)
	case object.Kind == kueue.Reservation && origin != "":
		return fmt.Errorf("%s: only operators reserve nodes, with `muster reserve`", object.Key)
	case object.Kind == kueue.Budget && origin != "":
		return fmt.Errorf("%s: only operators set budgets, with `muster apply`", object.Key)
	case kueue.IsHold(object.Kind) && origin != "":
		return fmt.Errorf("%s: only operators hold queues, with `muster hold`; want stopPolicy in the manifest of the ClusterQueue or LocalQueue", object.Key)
	case kueue.Keys(f.Policy)[object.Key]:
		return fmt.Errorf("%s: the queues file of queue-manager has it and takes precedence over applied objects: change it there", object.Key)
	case there && present.Origin != origin:
		return fmt.Errorf("%s: belongs to %s already; change or delete it there first", object.Key, originName(present.Origin))
	case left != nil:
		return left
	case there && bytes.Equal(present.Manifest, object.Manifest):
		outcome = query.Unchanged
	case there:
		outcome = query.Changed
	}
	p.Outcomes = append(p.Outcomes, query.Configured{Key: object.Key, Outcome: outcome, Notes: object.Notes})
	if outcome != query.Unchanged {
		applied := Applied{Object: object, Origin: origin}
		p.Set[object.Key] = applied
		p.Written = append(p.Written, applied)
	}
	return nil
}

func originName(origin string) string {
	if origin == "" {
		return "the objects applied with `muster apply`"
	}
	return fmt.Sprintf("cluster %q", origin)
}

func (f File) remove(p *Plan, key kueue.Key, origin string, applied map[kueue.Key]bool) error {
	present, there := p.Set[key]
	outcome := query.Deleted
	left := f.mayEndLeaving(present, applied)
	switch {
	case applied[key]:
		return fmt.Errorf("%s: is to be applied and deleted", key)
	case !there:
		outcome = query.NotThere
	case present.Origin != origin:
		return fmt.Errorf("%s: belongs to %s; delete it there", key, originName(present.Origin))
	case left != nil:
		return left
	default:
		delete(p.Set, key)
		p.Removed = append(p.Removed, key)
	}
	p.Outcomes = append(p.Outcomes, query.Configured{Key: key, Outcome: outcome})
	return nil
}

// inUse refuses to take a queue away from workloads that are in it, or to lead
// them to another ClusterQueue: that is what they are charged to.
func inUse(before, after Settings, live map[Place]int) error {
	was, is := leads(before), leads(after)
	var faults []error
	for _, place := range slices.SortedFunc(maps.Keys(live), Place.Compare) {
		old, known := was[place]
		next, stays := is[place]
		switch {
		case live[place] == 0 || !known || old == next:
		case !stays:
			faults = append(faults, fmt.Errorf("queue %q of namespace %q has %d workloads that have not ended: cancel them or let them end first", place.Queue, place.Namespace, live[place]))
		default:
			faults = append(faults, fmt.Errorf("queue %q of namespace %q would lead to clusterQueue %q instead of %q, and has %d workloads that have not ended: let them end first, or choose another name",
				place.Queue, place.Namespace, next, old, live[place]))
		}
	}
	return errors.Join(faults...)
}

// leads returns to which ClusterQueue each place leads.
func leads(s Settings) map[Place]string {
	to := map[Place]string{}
	for _, l := range state.PolicyOf(s.Queues, s.Policy).LocalQueues {
		to[Place{Namespace: l.Namespace, Queue: l.Name}] = l.ClusterQueue
	}
	return to
}
