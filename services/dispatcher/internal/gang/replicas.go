package gang

import (
	"cmp"
	"slices"
)

// replica is the pods of a set that belong together: hosts of one replica, which go to one
// domain, or all pods that belong to none (an empty name).
type replica struct {
	name          string
	gated, placed []Pod
	// size is how many places of its domain it takes when it is whole.
	size int
	// leaving: a pod of it is being deleted. KubeRay replaces a replica of several hosts
	// whole, so its places will be free.
	leaving bool
	home    string // its domain, once housed
	housed  bool   // a pod of it has a place
}

func replicasOf(pods []Pod) []*replica {
	named := map[string]*replica{}
	var all []*replica
	for _, pod := range pods {
		r := named[pod.Replica]
		if r == nil {
			r = &replica{name: pod.Replica}
			named[pod.Replica], all = r, append(all, r)
		}
		if pod.Gated {
			r.gated = append(r.gated, pod)
		} else {
			r.placed = append(r.placed, pod)
		}
		r.size++
		r.leaving = r.leaving || pod.Deleting
	}
	for _, r := range all {
		slices.SortFunc(r.gated, func(a, b Pod) int { return cmp.Compare(a.Name, b.Name) })
	}
	return all
}

// inOrder compares two replicas by when they get places.
func inOrder(a, b *replica) int {
	rank := func(r *replica) int {
		if r.housed {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.name, b.name))
}

// vacant is the places of a pod set and how many pods each still takes.
type vacant []*spot

type spot struct {
	hostname, domain string
	places           int // of the command
	free             int // places that no pod has
	leaving          int // pods that are being deleted
}

func (s *spot) occupy(leaving bool) {
	s.free--
	if leaving {
		s.leaving++
	}
}

func (v vacant) at(hostname string) *spot {
	if i := slices.IndexFunc(v, func(s *spot) bool { return s.hostname == hostname }); i >= 0 {
		return v[i]
	}
	return nil
}

// sum adds a number of each place of a domain.
func (v vacant) sum(domain string, of func(*spot) int) int {
	sum := 0
	for _, s := range v {
		if s.domain == domain {
			sum += max(0, of(s))
		}
	}
	return sum
}

func (v vacant) free(domain string) int { return v.sum(domain, func(s *spot) int { return s.free }) }

// domainFor chooses the domain of a replica that has no place yet. The first choice has free
// places for the pods that exist, and room for the whole replica beside those that stay
// there, some pods of which may be missing still. Another has that room once its pods have
// gone. Where neither exists (replicas smaller than a slice, or nodes with other labels than
// at the admission), free places are enough.
func (v vacant) domainFor(r *replica, taken map[string]int) string {
	room := func(domain string) bool {
		return v.sum(domain, func(s *spot) int { return s.places })-taken[domain] >= r.size
	}
	for _, suits := range []func(string) bool{
		func(domain string) bool { return room(domain) && v.free(domain) >= len(r.gated) },
		room,
		func(domain string) bool { return v.free(domain) >= len(r.gated) },
	} {
		for _, s := range v {
			if suits(s.domain) {
				return s.domain
			}
		}
	}
	return ""
}

// first returns the first free place for a pod of a replica, in its domain where it has one.
// It is nil when there is none, or when the pod is to wait for one that is being left.
func (v vacant) first(r *replica) *spot {
	if r.name != "" {
		if i := slices.IndexFunc(v, func(s *spot) bool { return s.free > 0 && s.domain == r.home }); i >= 0 {
			return v[i]
		}
		// Without a domain it waits for whatever is being left: together that may be one.
		if slices.ContainsFunc(v, func(s *spot) bool { return s.leaving > 0 && (r.home == "" || s.domain == r.home) }) {
			return nil
		}
	}
	if i := slices.IndexFunc(v, func(s *spot) bool { return s.free > 0 }); i >= 0 {
		return v[i]
	}
	return nil
}
