package admission

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"muster.dev/muster/pkg/placement"
	"muster.dev/muster/pkg/quota"
	"muster.dev/muster/pkg/workload"
)

// shape is what workloads with equal pod sets have in common: they fit in the
// same places.
type shape struct {
	key     string
	podSets []workload.PodSet
	demand  placement.Demand
	refs    int // waiting of this shape
	aliases []*workload.PodSet
	// options of the queues in which it waits.
	options map[*queue]*options
}

// options are the flavors that a shape may be given in a queue.
type options struct {
	assignments []quota.Assignment
	variants    []*variant // of each assignment
	cut         bool
	why         *workload.Reason // there are none
}

// variant is a shape narrowed by flavors: what is to be placed.
type variant struct {
	key string
	w   *workload.Workload // of no id
	// verdicts on clusters that have no places for it. They hold until the fleet
	// wakes the variant.
	verdicts map[string]placement.Verdict
	waiters  map[*bucket]bool // blocked by it
	shapes   int              // options that have it
}

// maxAliases bounds how many equal slices of pod sets are known by address.
const maxAliases = 16

// shapeOf returns the shape of a workload and lets the workload share its pod
// sets with all others of that shape.
func (s *State) shapeOf(w *workload.Workload) *shape {
	if len(w.PodSets) > 0 {
		if known := s.aliases[&w.PodSets[0]]; known != nil && len(known.podSets) == len(w.PodSets) {
			w.PodSets = known.podSets
			return known
		}
	}
	key := keyOf(w.PodSets)
	sh := s.shapes[key]
	if sh == nil {
		sh = &shape{key: key, podSets: w.PodSets, demand: placement.DemandOf(w.PodSets), options: map[*queue]*options{}}
		s.shapes[key] = sh
	}
	if len(w.PodSets) > 0 && len(sh.aliases) < maxAliases {
		sh.aliases = append(sh.aliases, &w.PodSets[0])
		s.aliases[&w.PodSets[0]] = sh
	}
	w.PodSets = sh.podSets
	return sh
}

func keyOf(podSets []workload.PodSet) string {
	encoded, err := json.Marshal(podSets)
	if err != nil {
		panic(fmt.Sprintf("pod sets cannot be encoded: %v", err)) // plain data always can
	}
	sum := sha256.Sum256(encoded)
	return string(sum[:])
}

// drop forgets a shape that nobody waits with.
func (s *State) drop(sh *shape) {
	if sh.refs--; sh.refs > 0 {
		return
	}
	delete(s.shapes, sh.key)
	for _, alias := range sh.aliases {
		delete(s.aliases, alias)
	}
	for _, o := range sh.options {
		for _, v := range o.variants {
			if v.shapes--; v.shapes == 0 {
				delete(s.variants, v.key)
				for cluster := range v.verdicts {
					s.fleets[cluster].Unpark(v.key)
				}
			}
		}
	}
}

// optionsOf returns the flavors that the shape may be given in the queue.
func (s *State) optionsOf(q *queue, sh *shape) *options {
	if o := sh.options[q]; o != nil {
		return o
	}
	o := &options{}
	o.assignments, o.cut, o.why = q.quota.Assignments(sh.podSets)
	for _, a := range o.assignments {
		v := s.variantOf(s.tree.Effective(sh.podSets, a.Flavors), sh)
		v.shapes++
		o.variants = append(o.variants, v)
	}
	sh.options[q] = o
	return o
}

func (s *State) variantOf(effective []workload.PodSet, sh *shape) *variant {
	key := sh.key
	if len(effective) > 0 && &effective[0] != &sh.podSets[0] {
		key = keyOf(effective)
	}
	v := s.variants[key]
	if v == nil {
		v = &variant{
			key: key, w: &workload.Workload{PodSets: effective},
			verdicts: map[string]placement.Verdict{}, waiters: map[*bucket]bool{},
		}
		s.variants[key] = v
	}
	return v
}
