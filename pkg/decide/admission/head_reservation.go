package admission

import (
	"maps"
	"slices"
	"time"

	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// headReservation is the places that the head of a Backfill queue will have when
// certain gangs have ended (EASY backfill). A gang that comes after the head may not
// take what the head needs of them.
type headReservation struct {
	head     *Waiting
	flavored *flavoredSignature
	flavors  []workload.PodSetFlavors // by which it is flavored
	cluster  string
	places   []workload.Placement
	// start is when the places will be free by declared run times; zero when that is
	// not known and the nodes are kept clear.
	start time.Time
	// after are the gangs whose end the head waits for.
	after []*Started
	// keptClear is since when the nodes have been kept clear for the head: what it needs of
	// them goes to no gang after it. Zero when they are not.
	keptClear time.Time
	// stale: it is recomputed before it is used.
	stale bool
	// reported: the reason of the head has been reported with it.
	reported bool
	// blocked are the classes that it keeps back.
	blocked map[*equivalenceClass]bool
}

func idsOf(gangs []*Started) []workload.ID {
	ids := make([]workload.ID, len(gangs))
	for i, g := range gangs {
		ids[i] = g.Workload.ID
	}
	return ids
}

// reservationOf returns the reservation of a head, nil for none.
func (s *State) reservationOf(w *Waiting) *headReservation {
	i := slices.IndexFunc(s.reservations, func(r *headReservation) bool { return r.head == w })
	if i < 0 {
		return nil
	}
	return s.reservations[i]
}

// endReservation drops a reservation and reopens the classes that it kept back.
func (s *State) endReservation(r *headReservation) {
	s.reservations = slices.DeleteFunc(s.reservations, func(other *headReservation) bool { return other == r })
	for class := range r.blocked {
		class.keptBy(nil)
		if class.Len() > 0 {
			s.reopen(class)
		}
	}
}

// block notes that the reservation keeps a class back.
func (r *headReservation) block(class *equivalenceClass) {
	if before := class.blockedBy; before != nil && before != r {
		delete(before.blocked, class)
	}
	if r.blocked == nil {
		r.blocked = map[*equivalenceClass]bool{}
	}
	r.blocked[class] = true
	class.keptBy(r)
}

// appliesTo reports whether the workload must spare the reserved places, because it
// comes after the head.
func (r *headReservation) appliesTo(w *Waiting) bool {
	return r.cluster != "" && r.head != w && r.head.comesBefore(w)
}

// endsInTime reports whether a gang that starts now with that run time ends before the
// head starts.
func (r *headReservation) endsInTime(now time.Time, runTime time.Duration) bool {
	return !r.start.IsZero() && runTime > 0 && !now.Add(runTime).After(r.start)
}

// end returns when the gang will have ended by its declared run time; zero when that is not
// known.
func (r *headReservation) end() time.Time {
	if r.start.IsZero() || r.head.RunTime <= 0 {
		return time.Time{}
	}
	return r.start.Add(r.head.RunTime)
}

// hasPlacesAt reports whether the gang has its places at a time after its start.
func (r *headReservation) hasPlacesAt(at time.Time) bool {
	end := r.end()
	return end.IsZero() || end.After(at)
}

// fromFree returns the part of the reserved places that must come from what is free now,
// because the gangs in after do not free it: for each node the most that is needed at the
// start of any of them, for those that have places then. Of those without a known start it
// is the sum. It has the form of a workload with a pod set for each node, so that a fleet
// can allocate it.
func fromFree(reservations []*headReservation) (*workload.Workload, []workload.Placement) {
	required := map[string]resource.List{}
	var nodes []string
	if len(reservations) == 1 { // as nearly always
		r := reservations[0]
		required = amountsOn(nil, r.flavored.w, r.places)
		for _, g := range r.after {
			subtract(required, g)
		}
		return asGang(required, slices.Sorted(maps.Keys(required)))
	}
	for _, r := range reservations {
		held := map[string]resource.List{}
		for _, other := range reservations {
			if r == other || !r.start.IsZero() && !other.start.IsZero() && !other.start.After(r.start) && other.hasPlacesAt(r.start) {
				held = amountsOn(held, other.flavored.w, other.places)
			}
		}
		for _, g := range r.after {
			subtract(held, g)
		}
		for node, needed := range held {
			before, known := required[node]
			switch {
			case !known:
				nodes = append(nodes, node)
				required[node] = needed.Max(resource.List{})
			case r.start.IsZero():
				required[node] = before.Plus(needed.Max(resource.List{}))
			default:
				required[node] = before.Max(needed)
			}
		}
	}
	slices.Sort(nodes)
	return asGang(required, nodes)
}

// subtract takes what a gang frees off amounts on nodes.
func subtract(from map[string]resource.List, g *Started) {
	for _, p := range g.Placements {
		held, known := from[p.Node]
		for i := range g.Workload.PodSets {
			if known && g.Workload.PodSets[i].Name == p.PodSet {
				held = held.Minus(requestsOf(&g.Workload.PodSets[i], p.Pods))
				from[p.Node] = held
			}
		}
	}
}

// asGang returns what is positive of amounts on nodes as a gang. Nodes one after the other
// with equal amounts share a pod set.
func asGang(required map[string]resource.List, nodes []string) (*workload.Workload, []workload.Placement) {
	w := &workload.Workload{}
	var places []workload.Placement
	for _, node := range nodes {
		needed := required[node]
		for name, amount := range needed {
			if amount <= 0 {
				needed = needed.Clone()
				delete(needed, name)
			}
		}
		if len(needed) == 0 {
			continue
		}
		if last := len(w.PodSets) - 1; last < 0 || !w.PodSets[last].Template.Requests.Equal(needed) {
			w.PodSets = append(w.PodSets, workload.PodSet{Name: node, Template: workload.Template{Requests: needed}})
		}
		set := &w.PodSets[len(w.PodSets)-1]
		set.Count++
		places = append(places, workload.Placement{PodSet: set.Name, Node: node, Pods: 1})
	}
	return w, places
}

// amountsOn adds what a gang's places take of each node.
func amountsOn(sum map[string]resource.List, w *workload.Workload, places []workload.Placement) map[string]resource.List {
	if sum == nil {
		sum = map[string]resource.List{}
	}
	for _, p := range places {
		for i := range w.PodSets {
			if w.PodSets[i].Name != p.PodSet {
				continue
			}
			requests := requestsOf(&w.PodSets[i], p.Pods)
			if held, known := sum[p.Node]; known {
				requests = held.Plus(requests)
			}
			sum[p.Node] = requests
		}
	}
	return sum
}

// requestsOf returns what that many pods of a set request together. The caller does not change it.
func requestsOf(set *workload.PodSet, pods int) resource.List {
	if pods == 1 { // as nearly always
		return set.Template.Requests
	}
	return set.Template.Requests.Times(int64(pods))
}

// sameAs reports whether a reservation is equal to the one that it replaces.
func (r *headReservation) sameAs(old *headReservation) bool {
	return r.cluster == old.cluster && r.start.Equal(old.start) && slices.Equal(r.places, old.places) &&
		slices.EqualFunc(r.after, old.after, func(a, b *Started) bool { return a.Workload.ID == b.Workload.ID })
}
