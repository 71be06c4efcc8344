package gang

import (
	"cmp"
	"maps"
	"slices"

	"muster.dev/muster/pkg/message/event"
)

// place is where pods of a set go.
type place struct{ set, hostname string }

// places counts the command's places, and gives the hostname of their nodes.
func places(command *event.GangDesired) (count map[place]int, hostnames map[string]string) {
	count, hostnames = map[place]int{}, map[string]string{}
	for _, p := range command.Placements {
		hostname := cmp.Or(p.Hostname, p.Node)
		count[place{p.PodSet, hostname}] += p.Pods
		hostnames[p.Node] = hostname
	}
	return count, hostnames
}

// pinsOf gives the gated pods of a set the places of the set that no other pod
// has: pods of a replica in one domain, replicas and pods in the order of their
// names.
func pinsOf(command *event.GangDesired, set string, pods []Pod) []Pin {
	v := vacant{}
	nodeOf := map[string]string{} // bound pods are known by node, places by hostname
	for _, place := range command.Placements {
		hostname := cmp.Or(place.Hostname, place.Node)
		nodeOf[place.Node] = hostname
		if place.PodSet == set {
			v = append(v, &spot{hostname: hostname, domain: place.Domain, pods: place.Pods})
		}
	}
	replicas := map[string][]Pod{}
	homes := map[string]string{} // domains of replicas that are placed in part
	for _, pod := range pods {
		if pod.Gated {
			replicas[pod.Replica] = append(replicas[pod.Replica], pod)
		} else if s := v.at(cmp.Or(pod.Hostname, nodeOf[pod.Node])); s != nil {
			s.pods--
			homes[pod.Replica] = s.domain
		}
	}
	var pins []Pin
	for _, replica := range slices.Sorted(maps.Keys(replicas)) {
		gated := replicas[replica]
		slices.SortFunc(gated, func(a, b Pod) int { return cmp.Compare(a.Name, b.Name) })
		home, placed := homes[replica]
		if replica != "" && !(placed && v.free(home) >= len(gated)) {
			home = v.domainFor(len(gated))
		}
		for _, pod := range gated {
			s := v.first(home, replica != "")
			if s == nil {
				return pins
			}
			s.pods--
			pins = append(pins, Pin{pod, s.hostname})
		}
	}
	return pins
}

// vacant is the places of a pod set and how many pods each still takes.
type vacant []*spot

type spot struct {
	hostname, domain string
	pods             int
}

func (v vacant) at(hostname string) *spot {
	if i := slices.IndexFunc(v, func(s *spot) bool { return s.hostname == hostname }); i >= 0 {
		return v[i]
	}
	return nil
}

// free returns how many pods a domain still takes.
func (v vacant) free(domain string) int {
	pods := 0
	for _, s := range v {
		if s.domain == domain {
			pods += max(0, s.pods)
		}
	}
	return pods
}

// domainFor returns the first domain that takes the number of pods.
func (v vacant) domainFor(pods int) string {
	for _, s := range v {
		if v.free(s.domain) >= pods {
			return s.domain
		}
	}
	return ""
}

// first returns the first place that takes a pod, of the domain when one of it
// does and there is a choice to make.
func (v vacant) first(domain string, choose bool) *spot {
	if choose {
		if i := slices.IndexFunc(v, func(s *spot) bool { return s.pods > 0 && s.domain == domain }); i >= 0 {
			return v[i]
		}
	}
	if i := slices.IndexFunc(v, func(s *spot) bool { return s.pods > 0 }); i >= 0 {
		return v[i]
	}
	return nil
}
