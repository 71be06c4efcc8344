package admission

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// podSetSignature stands for all workloads with equal pod sets, the same home and objects of
// the same kinds. They fit in the same places.
type podSetSignature struct {
	key string
	// placed is the key without what single containers ask for, which placement does not read:
	// their names differ from job to job.
	placed  string
	podSets []workload.PodSet
	home    string                // the only cluster where they may be; "" for any
	needs   []workload.ObjectKind // kinds that their cluster has to serve
	demand  placement.Demand
	refs    int // waiting workloads that have it
	aliases []*workload.PodSet
	// least stands for the same workloads with the fewest pods with which they may start;
	// nil when they start with all.
	least *podSetSignature
	// options are its flavors in each queue in which it waits.
	options map[*queue]*flavorOptions
}

// flavorOptions are the flavors that a signature may be given in a queue.
type flavorOptions struct {
	assignments []quota.Assignment
	flavored    []*flavoredSignature // in the order of assignments
	cut         bool
	// impossible are the assignments that ask more than the queue could have if nothing
	// were in use; nil until it is asked for.
	impossible []bool
	why        *workload.Reason // why there are none
}

// flavoredSignature is a signature narrowed by the flavors of an assignment. It is what
// package placement places.
type flavoredSignature struct {
	key string
	w   *workload.Workload // without an id
	// verdicts has the clusters without places for it. A verdict is valid until the
	// fleet requeues the key.
	verdicts map[string]placement.Verdict
	// transient: it is of one search for a size, and keeps no verdicts.
	transient bool
	// offers has what the empty nodes of clusters offer to it, where that was asked for.
	offers  map[string]offer
	blocked map[*equivalenceClass]bool // classes that wait for it
	refs    int                        // flavorOptions that have it
}

// mayBeOn reports whether the workloads may get places on the cluster.
func (sig *podSetSignature) mayBeOn(cluster string) bool {
	return sig.home == "" || sig.home == cluster
}

// maxAliases bounds how many equal slices of pod sets are found by address.
const maxAliases = 16

// signatureOf returns the signature of a workload, and has the workload share its pod
// sets with all others of that signature.
func (s *State) signatureOf(w *workload.Workload) *podSetSignature {
	if len(w.PodSets) > 0 {
		if known := s.aliases[&w.PodSets[0]]; known != nil && len(known.podSets) == len(w.PodSets) && known.home == w.Home() && slices.Equal(known.needs, w.Needs()) {
			w.PodSets = known.podSets
			return known
		}
	}
	encoded := encodedPlaced(w.PodSets, w.Home(), w.Needs())
	key := digest(appendAsks(encoded, w.PodSets))
	sig := s.signatures[key]
	if sig == nil {
		sig = &podSetSignature{key: key, placed: digest(encoded), podSets: w.PodSets, home: w.Home(), needs: w.Needs(), demand: placement.DemandOf(w.PodSets), options: map[*queue]*flavorOptions{}}
		s.signatures[key] = sig
		if steps := stepsOf(w.PodSets); steps > 0 {
			least := *w
			least.PodSets = sizedDown(w.PodSets, steps, steps)
			sig.least = s.signatureOf(&least)
			sig.least.refs++
		}
	}
	if len(w.PodSets) > 0 && len(sig.aliases) < maxAliases {
		sig.aliases = append(sig.aliases, &w.PodSets[0])
		s.aliases[&w.PodSets[0]] = sig
	}
	w.PodSets = sig.podSets
	return sig
}

// encodedPlaced has what placement depends on.
func encodedPlaced(podSets []workload.PodSet, home string, needs []workload.ObjectKind) []byte {
	encoded, err := json.Marshal(struct {
		PodSets []workload.PodSet
		Home    string
		Needs   []workload.ObjectKind
	}{workload.WithoutAsks(podSets), home, needs})
	if err != nil {
		panic(fmt.Sprintf("pod sets cannot be encoded: %v", err)) // plain data always can
	}
	return encoded
}

func digest(encoded []byte) string {
	sum := sha256.Sum256(encoded)
	return string(sum[:])
}

// appendAsks appends what the containers ask for, in less time than it takes as JSON: a new
// leader makes the keys of all that wait.
func appendAsks(key []byte, podSets []workload.PodSet) []byte {
	for i := range podSets {
		for _, pod := range podSets[i].Template.Asks {
			for j := range pod {
				key = strconv.AppendQuote(strconv.AppendQuote(key, pod[j].Name), pod[j].Kind)
				for _, list := range []resource.List{pod[j].Requests, pod[j].Limits} {
					for _, name := range list.Names() {
						key = strconv.AppendInt(strconv.AppendQuote(key, string(name)), list[name], 10)
					}
					key = append(key, ';')
				}
			}
			key = append(key, '|')
		}
		key = append(key, '\n')
	}
	return key
}

// dropSignature releases a signature, and forgets it with the last reference.
func (s *State) dropSignature(sig *podSetSignature) {
	if sig.refs--; sig.refs > 0 {
		return
	}
	delete(s.signatures, sig.key)
	for _, alias := range sig.aliases {
		delete(s.aliases, alias)
	}
	for _, o := range sig.options {
		for _, flavored := range o.flavored {
			if flavored.refs--; flavored.refs == 0 {
				delete(s.flavored, flavored.key)
				for cluster := range flavored.verdicts {
					s.fleets[cluster].RemoveUnschedulable(flavored.key)
				}
			}
		}
	}
	if sig.least != nil {
		s.dropSignature(sig.least)
	}
}

// optionsOf returns the flavors that the signature may be given in the queue.
func (s *State) optionsOf(q *queue, sig *podSetSignature) *flavorOptions {
	if o := sig.options[q]; o != nil {
		return o
	}
	o := &flavorOptions{}
	o.assignments, o.cut, o.why = q.quota.Assignments(sig.podSets)
	for _, a := range o.assignments {
		flavored := s.flavoredOf(s.tree.Effective(sig.podSets, a.Flavors), sig)
		flavored.refs++
		o.flavored = append(o.flavored, flavored)
	}
	sig.options[q] = o
	return o
}

func (s *State) flavoredOf(effective []workload.PodSet, sig *podSetSignature) *flavoredSignature {
	key := sig.placed
	if len(effective) > 0 && &effective[0] != &sig.podSets[0] {
		key = digest(encodedPlaced(effective, sig.home, sig.needs))
	}
	flavored := s.flavored[key]
	if flavored == nil {
		flavored = &flavoredSignature{
			key: key, w: &workload.Workload{PodSets: effective},
			verdicts: map[string]placement.Verdict{}, blocked: map[*equivalenceClass]bool{},
		}
		s.flavored[key] = flavored
	}
	return flavored
}

// sizes returns the signature and, where the workloads may start with fewer pods, that of
// their smallest size.
func (sig *podSetSignature) sizes() []*podSetSignature {
	if sig.least == nil {
		return []*podSetSignature{sig}
	}
	return []*podSetSignature{sig, sig.least}
}

// smallest returns the signature of the smallest size with which the workloads may start.
// They cannot start where that one cannot.
func (sig *podSetSignature) smallest() *podSetSignature {
	if sig.least != nil {
		return sig.least
	}
	return sig
}

// stepsOf returns by how many replicas in all the pod sets may be smaller at the start.
func stepsOf(sets []workload.PodSet) int {
	steps := 0
	for i := range sets {
		steps += sets[i].Spare()
	}
	return steps
}

// sizedDown returns the pod sets at a step of Kueue's search (PodSetReducer): step 0 is
// all pods, the last step the fewest, and in between each set gives up its part, rounded
// down.
func sizedDown(sets []workload.PodSet, step, steps int) []workload.PodSet {
	fewer := slices.Clone(sets)
	for i := range fewer {
		set := &fewer[i]
		given := set.Spare() * step / steps * max(1, set.Step)
		set.Count, set.Resized = set.Count-given, set.Resized-given
	}
	return fewer
}
