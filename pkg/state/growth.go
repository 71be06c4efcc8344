package state

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// growth is what a running gang requests beyond its places, all of it or none. It is not
// stored: a new term reads the sizes again and queues the request again.
type growth struct {
	order int64 // in line, like a submission of the moment when it was first asked
	since time.Time
	sets  []workload.PodSet // Count is by how many each grows
}

// mostGrowth bounds the pods that a set requests beyond its places: the command to place more exceeds
// every max_payload of NATS.
const mostGrowth = 1 << 20

// requestGrowth queues a running gang's request for the pods that have no places.
func (s *sizing) requestGrowth(e *entry, now time.Time) {
	more, refusal := s.wantedGrowth(e)
	switch {
	case len(more) == 0:
		s.stopGrowing(e)
		if refusal != "" && e.Phase == workload.Running {
			s.setWaitReason(e, workload.Reason{Kind: workload.ReasonGrowing, Message: refusal}, now)
		} else if e.Reason != nil && e.Reason.Kind == workload.ReasonGrowing {
			e.Reason = nil
			s.emitChanged(e, now)
		}
		return
	case e.growth != nil && reflect.DeepEqual(e.growth.sets, more):
		return // it stands in line with that
	case e.growth == nil:
		e.growth = &growth{order: s.takeOrder(), since: now}
	}
	e.growth.sets = more
	s.admission.Grow(admission.Growth{
		Workload: e.ID, PodSets: more, Order: e.growth.order, Since: e.growth.since, RunTime: s.timeLeft(e, now),
	})
}

// wantedGrowth returns what a running gang wants beyond its places, or why it cannot have
// it at all.
func (s *sizing) wantedGrowth(e *entry) (more []workload.PodSet, refusal string) {
	if e.Phase != workload.Running {
		return nil, ""
	}
	pods := e.Pods()
	for _, set := range e.PodSets {
		by := e.sizes[set.Name] - set.Count
		if set.Role != workload.RoleWorker || by <= 0 {
			continue
		}
		if by > mostGrowth { // so that sums of it can be made
			return nil, fmt.Sprintf("worker group %q is to have %d pods: the command to place them exceeds what NATS takes; request fewer pods", set.Name, e.sizes[set.Name])
		}
		set.Count, set.Resized, set.Later = by, by, 0
		s.constrainToDomain(e, &set, e.Placements)
		s.constrainToPeers(e, &set)
		more, pods = append(more, set), pods+by
	}
	if size := int64(frameBytes + carriedBytes*workload.MostCarried + podSetBytes*len(e.PodSets) + placeBytes*pods); size > s.maxEvent/2 {
		return nil, fmt.Sprintf("the gang requests %d pods in all: the command to place them exceeds the max_payload of NATS; raise it or request fewer pods", pods)
	}
	if err := s.largerThanAllowed(e, more); err != nil {
		return nil, "the larger gang exceeds a limit of its queue: " + sanitize(err.Error())
	}
	if strange := e.unknownGroups(); len(more) == 0 && len(strange) > 0 {
		return nil, fmt.Sprintf("worker groups %s were not submitted: Muster reserves no places for their pods; submit the cluster again",
			strings.Join(strange, ", "))
	}
	if surplus := s.surplusPods(e); len(more) == 0 && len(surplus) > 0 {
		return nil, fmt.Sprintf("running; %s wait at their scheduling gates: only wrapped RayClusters can grow; submit the AppWrapper again with more pods",
			strings.Join(surplus, ", "))
	}
	return more, ""
}

// largerThanAllowed returns what of the grown gang is more than its queue allows.
func (s *sizing) largerThanAllowed(e *entry, more []workload.PodSet) error {
	rules := s.queues[e.Queue].Rules
	if len(more) == 0 || rules.Limits.Pods == 0 && len(rules.Limits.Resources) == 0 {
		return nil
	}
	grown := e.Workload
	grown.PodSets = slices.Concat(grown.PodSets, more)
	return rules.TooLarge(&grown)
}

// surplusPods are the pods of wrapped objects, such as a Deployment that was scaled up,
// that have no place. No status reports the sizes of such objects, but for Jobs of which
// pods have succeeded.
func (s *sizing) surplusPods(e *entry) (surplus []string) {
	g := s.gangs[gangKey{e.Cluster, e.ID}]
	if g == nil || e.Kind != workload.KindAppWrapper {
		return nil
	}
	there, waiting := map[string]int{}, map[string]int{}
	for _, pod := range g.pods {
		waits := pod.Node == ""
		if pod.Attempt != e.Attempt || pod.Deleting || !waits && !pod.Holds() {
			continue
		}
		there[pod.PodSet]++
		if waits {
			waiting[pod.PodSet]++
		}
	}
	for _, set := range e.PodSets {
		_, known := e.sizes[set.Name]
		if pods := min(waiting[set.Name], there[set.Name]-set.Count); set.Role == workload.RoleWorker && !known && pods > 0 {
			surplus = append(surplus, fmt.Sprintf("%d more of %q", pods, set.Name))
		}
	}
	return surplus
}

// constrainToPeers has the new pods of a set go where affinity and anti-affinity to the
// pods that are there let them.
func (s *sizing) constrainToPeers(e *entry, set *workload.PodSet) {
	for _, t := range s.inTopology(e, set).Template.Together {
		for _, key := range workload.LevelKeys(t.TopologyKey) {
			if values := s.domains(e, key, append(slices.Clone(t.PodSets), set.Name)); len(values) > 0 {
				set.Template.Affinity = workload.Requiring(set.Template.Affinity, workload.Requirement{Key: key, Operator: "In", Values: values[:1]})
			}
		}
	}
	apart := func(key string, sets []string) {
		if values := s.domains(e, key, sets); len(values) > 0 {
			set.Template.Affinity = workload.Requiring(set.Template.Affinity, workload.Requirement{Key: key, Operator: "NotIn", Values: values})
		}
	}
	for _, other := range e.PodSets {
		for _, a := range other.Template.Apart {
			if other.Name == set.Name {
				apart(a.TopologyKey, a.PodSets)
			} else if slices.Contains(a.PodSets, set.Name) {
				apart(a.TopologyKey, []string{other.Name})
			}
		}
	}
}

// unknownGroups are worker groups that were added to the object.
func (e *entry) unknownGroups() []string {
	var strange []string
	for name, size := range e.sizes {
		if size > 0 && !slices.ContainsFunc(e.PodSets, func(set workload.PodSet) bool { return set.Name == name }) {
			strange = append(strange, fmt.Sprintf("%q", name))
		}
	}
	slices.Sort(strange)
	return strange
}

// explainGrowth records why a gang that grows waits for places.
func (s *sizing) explainGrowth(e *entry, why workload.Reason, now time.Time) {
	if e.growth == nil || !mayExplain(e, workload.ReasonGrowing) {
		return
	}
	s.setWaitReason(e, e.growth.reason(why), now)
}

// applyGrowth reserves what a gang has asked for.
func (s *sizing) applyGrowth(e *entry, g admission.Admission, now time.Time) {
	sets := slices.Clone(e.PodSets) // others of the same shape share them
	for i := range sets {
		for _, more := range e.growth.sets {
			if more.Name == sets[i].Name {
				sets[i].Count += more.Count
				sets[i].Resized += more.Count
			}
		}
	}
	e.growth, e.scaleDown = nil, nil
	s.updateReserved(e, -1)
	e.PodSets, e.Placements, e.Flavors = sets, g.Placements, g.Flavors
	s.updateReserved(e, 1)
	s.recordPlaces(e)
	s.changed.grown++
	if e.Reason != nil && e.Reason.Kind == workload.ReasonGrowing {
		e.Reason = nil
	}
	delete(s.staleReasons, e.ID)
	s.emitChanged(e, now)
	s.emitCommand(e, event.Present, now)
}

// recordPlaces notes that a started gang has other places.
func (l *lifecycle) recordPlaces(e *entry) {
	l.changed.places(e)
	l.changed.workloads[e.ID] = e
	l.countUnreserved(gangKey{e.Cluster, e.ID})
}

func (s *sizing) stopGrowing(e *entry) {
	if e.growth != nil {
		e.growth = nil
		s.admission.StopGrowing(e.ID)
	}
}

// timeLeft is for how long a gang is declared to run on; zero when that is not
// known or over.
func (s *sizing) timeLeft(e *entry, now time.Time) time.Duration {
	if declared := s.runTime(e); declared > 0 {
		return max(0, e.Times.Admitted.Add(declared).Sub(now))
	}
	return 0
}
