package workload

import "muster.dev/muster/pkg/spec/resource"

// ContainerAsk is what a container of a pod asks for, in the order of the pod, init containers
// first. An amount of zero is kept: it is a request or a limit, too.
type ContainerAsk struct {
	Name string `json:"name"`
	// Kind is empty for a container that runs after the init containers.
	Kind     string        `json:"kind,omitempty"`
	Requests resource.List `json:"requests,omitempty"`
	Limits   resource.List `json:"limits,omitempty"`
}

// Kinds of containers.
const (
	AskInit    = "init"    // ends before the next one starts
	AskSidecar = "sidecar" // an init container that runs beside those after it
)

// MostAsks bounds the size of what the containers of a template ask for, see SizeOfAsks; a pod
// with more counts as one whose containers are not known.
const MostAsks = 256

// SizeOfAsks counts pods, containers, requests and limits.
func SizeOfAsks(asks [][]ContainerAsk) int {
	size := len(asks)
	for _, pod := range asks {
		size += len(pod)
		for i := range pod {
			size += len(pod[i].Requests) + len(pod[i].Limits)
		}
	}
	return size
}

// asksOfBoth returns the containers of two pods, those of the first alone where both have too
// many.
func asksOfBoth(one, other [][]ContainerAsk) [][]ContainerAsk {
	both := append(one[:len(one):len(one)], other...)
	if SizeOfAsks(both) > MostAsks {
		return one
	}
	return both
}

// podAsks returns what a pod asks for as its LimitRanges count it: the sum of its containers
// and sidecars, or more where an init container needs more beside the sidecars before it.
func podAsks(asks []ContainerAsk, of func(i int) resource.List) resource.List {
	together, sidecars, peak := resource.List{}, resource.List{}, resource.List{}
	for i := range asks {
		switch list := of(i); asks[i].Kind {
		case AskInit:
			peak = peak.Max(sidecars.Plus(list))
		case AskSidecar:
			together, sidecars = together.Plus(list), sidecars.Plus(list)
			peak = peak.Max(sidecars)
		default:
			together = together.Plus(list)
		}
	}
	return together.Max(peak)
}
