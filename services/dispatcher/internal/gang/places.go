package gang

import (
	"cmp"
	"slices"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// place is where pods of a set go.
type place struct{ set, hostname string }

// places counts the command's places, and gives the hostname of their nodes.
func places(command *event.GangCommand) (count map[place]int, hostnames map[string]string) {
	count, hostnames = map[place]int{}, map[string]string{}
	for _, p := range command.Placements {
		hostname := cmp.Or(p.Hostname, p.Node)
		count[place{p.PodSet, hostname}] += p.Pods
		hostnames[p.Node] = hostname
	}
	return count, hostnames
}

// pinsOf gives the gated pods of a set the places of the set that no other pod has. Pods of
// a replica of several hosts go to one domain. Replicas that are placed in part come first,
// because their domain is chosen; the others follow in the order of their names.
func pinsOf(command *event.GangCommand, set workload.PodSet, pods []Pod) []Pin {
	v := vacant{}
	nodeOf := map[string]string{} // bound pods are known by node, places by hostname
	for _, place := range command.Placements {
		hostname := cmp.Or(place.Hostname, place.Node)
		nodeOf[place.Node] = hostname
		if place.PodSet == set.Name {
			v = append(v, &spot{hostname: hostname, domain: place.Domain, places: place.Pods, free: place.Pods})
		}
	}
	replicas := replicasOf(pods)
	taken := map[string]int{} // places of domains, by replicas that stay there
	for _, r := range replicas {
		r.size = max(r.size, sliceSize(set))
		for _, pod := range r.placed {
			if s := v.at(cmp.Or(pod.Hostname, nodeOf[pod.Node])); s != nil {
				s.occupy(pod.Deleting)
				r.home, r.housed = s.domain, true
			}
		}
		if r.housed && !r.leaving {
			taken[r.home] += r.size
		}
	}
	slices.SortFunc(replicas, inOrder)
	var pins []Pin
	for _, r := range replicas {
		if r.name != "" && !r.housed && len(r.gated) > 0 {
			r.home = v.domainFor(r, taken)
			taken[r.home] += r.size
		}
		for _, pod := range r.gated {
			s := v.first(r)
			if s == nil {
				break
			}
			s.occupy(false)
			pins = append(pins, Pin{pod, s.hostname})
		}
	}
	return pins
}
