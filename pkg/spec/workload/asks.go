package workload

import (
	"slices"

	"muster.dev/muster/pkg/spec/resource"
)

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

// podAsks returns how much of a resource a pod asks for as its LimitRanges count it: the sum of
// its containers and sidecars, or more where an init container needs more beside the sidecars
// before it.
func podAsks(asks []ContainerAsk, of func(*ContainerAsk) int64) int64 {
	together, sidecars, peak := int64(0), int64(0), int64(0)
	for i := range asks {
		switch amount := of(&asks[i]); asks[i].Kind {
		case AskInit:
			peak = max(peak, resource.SaturatingAdd(sidecars, amount))
		case AskSidecar:
			together, sidecars = resource.SaturatingAdd(together, amount), resource.SaturatingAdd(sidecars, amount)
			peak = max(peak, sidecars)
		default:
			together = resource.SaturatingAdd(together, amount)
		}
	}
	return max(together, peak)
}

// WithoutAsks returns the pod sets without what single containers ask for, which only
// LimitRanges are compared with.
func WithoutAsks(sets []PodSet) []PodSet {
	without := slices.Clone(sets)
	for i := range without {
		without[i].Template.Asks = nil
	}
	return without
}
