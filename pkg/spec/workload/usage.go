package workload

import (
	"maps"
	"slices"
	"time"

	"muster.dev/muster/pkg/spec/resource"
)

// UsageStep is what a workload holds from one step of its life to the next, and whose it is.
// The history has it with each step that holds places or frees them, so that what was used
// is the sum over the history.
type UsageStep struct {
	Queue     string `json:"queue"`
	Namespace string `json:"namespace,omitempty"`
	Submitter string `json:"submitter,omitempty"`
	// Held is what its places have, by flavor; empty when they have just been freed.
	Held []HeldResources `json:"held,omitempty"`
	// Since is when it was submitted, at the admission of the first attempt; zero in all
	// other steps.
	Since time.Time `json:"since,omitzero"`
	// Checkpoint is the last that the attempt has reported, and IdleSince since when it has
	// been idle; zero where that is not known.
	Checkpoint time.Time `json:"checkpoint,omitzero"`
	IdleSince  time.Time `json:"idleSince,omitzero"`
}

// HeldResources are resources of one flavor; that of resources without quota is empty.
type HeldResources struct {
	Flavor    string        `json:"flavor,omitempty"`
	Resources resource.List `json:"resources"`
}

// HeldBy returns what the places of a workload have, in the order of the flavors' names. All
// of its pods have places.
func HeldBy(sets []PodSet, flavors []PodSetFlavors) []HeldResources {
	sums := map[string]resource.List{}
	for _, set := range sets {
		var of map[resource.Name]string
		if i := slices.IndexFunc(flavors, func(f PodSetFlavors) bool { return f.PodSet == set.Name }); i >= 0 {
			of = flavors[i].Flavors
		}
		for name, amount := range set.Template.Requests.Times(int64(set.Count)) {
			if amount == 0 {
				continue
			}
			if sums[of[name]] == nil {
				sums[of[name]] = resource.List{}
			}
			sums[of[name]][name] += amount
		}
	}
	held := make([]HeldResources, 0, len(sums))
	for _, flavor := range slices.Sorted(maps.Keys(sums)) {
		held = append(held, HeldResources{flavor, sums[flavor]})
	}
	return held
}
