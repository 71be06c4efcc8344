package book

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/pkg/admission"
	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/workload"
)

// growth is what a running gang asks for beyond its places, all of it or none. It
// is not stored: a new term hears the sizes again, and has it stand in line anew.
type growth struct {
	order int64 // in line, like a submission of the moment when it was first asked
	since time.Time
	sets  []workload.PodSet // Count is by how many each grows
}

// sized takes in the sizes of a gang's worker groups. Pods that its owner or Ray's
// autoscaler takes away are no loss.
func (b *Book) sized(e *entry, s *event.GangStatus, now time.Time) {
	for name, size := range s.Sizes {
		before, known := e.sizes[name]
		if !known {
			before = e.admitted(name)
		}
		if fewer := before - size; fewer > 0 {
			e.broken.excuse(name, fewer, max(0, b.staying(e, name)-size))
		}
	}
	e.sizes, e.keeps = s.Sizes, s.Keeps
	if e.Phase == workload.Running {
		b.checkWhole(e, now)
		b.schedule(e)
	}
}

// admitted is how many pods of a set have places.
func (e *entry) admitted(set string) int {
	for i := range e.PodSets {
		if e.PodSets[i].Name == set {
			return e.PodSets[i].Count
		}
	}
	return 0
}

// staying counts the pods of a set that are bound and nobody has begun to delete.
func (b *Book) staying(e *entry, set string) int {
	pods := 0
	for at, bound := range b.bound(e) {
		if at.PodSet == set {
			pods += bound
		}
	}
	return pods
}

// resize brings the places of a gang to the sizes of its worker groups: it gives
// places up of which the pods are gone, and asks for those of pods that wait
// beyond them.
func (b *Book) resize(e *entry, now time.Time) {
	if e.fixed || !e.Holding || e.sizes == nil && e.Kind != wrapper || !b.live.Has(e) {
		return
	}
	b.shrink(e, now)
	b.askForMore(e, now)
}

// askForMore has a running gang stand in line for the pods that it has no places
// for.
func (b *Book) askForMore(e *entry, now time.Time) {
	more, refusal := b.more(e)
	switch {
	case len(more) == 0:
		b.stopGrowing(e)
		if refusal != "" && e.Phase == workload.Running {
			b.explain(e, workload.Reason{Kind: workload.ReasonGrowing, Message: refusal}, now)
		} else if e.Reason != nil && e.Reason.Kind == workload.ReasonGrowing {
			e.Reason = nil
			b.tell(e, now)
		}
		return
	case e.grows != nil && reflect.DeepEqual(e.grows.sets, more):
		return // it stands in line with that
	case e.grows == nil:
		b.lastOrder++
		e.grows = &growth{order: b.lastOrder, since: now}
	}
	e.grows.sets = more
	b.admission.Grow(admission.Growth{
		Workload: e.ID, PodSets: more, Order: e.grows.order, Since: e.grows.since, RunTime: b.timeLeft(e, now),
	})
}

// more returns what a running gang wants beyond its places, or why it cannot have
// it at all.
func (b *Book) more(e *entry) (more []workload.PodSet, refusal string) {
	if e.Phase != workload.Running {
		return nil, ""
	}
	pods := e.Pods()
	for _, set := range e.PodSets {
		by := e.sizes[set.Name] - set.Count
		if set.Role != workload.RoleWorker || by <= 0 {
			continue
		}
		set.Count, set.Resized, set.Later = by, by, 0
		b.stayNear(e, &set, e.Placements)
		b.joinOthers(e, &set)
		more, pods = append(more, set), pods+by
	}
	if size := int64(frameBytes + podSetBytes*len(e.PodSets) + placeBytes*pods); size > b.maxEvent/2 {
		return nil, fmt.Sprintf("it asks for %d pods in all: the command to place them would be larger than NATS takes", pods)
	}
	if err := b.largerThanAllowed(e, more); err != nil {
		return nil, "it asks for more than it may: " + plain(err.Error())
	}
	if strange := e.strangeGroups(); len(more) == 0 && len(strange) > 0 {
		return nil, fmt.Sprintf("worker groups %s were not submitted: Muster has no places for their pods and counts them as foreign; submit the cluster anew",
			strings.Join(strange, ", "))
	}
	if surplus := b.surplus(e); len(more) == 0 && len(surplus) > 0 {
		return nil, fmt.Sprintf("it runs, and %s wait at their gates: what is wrapped beside RayClusters has the places that it was submitted with; submit it anew to have more",
			strings.Join(surplus, ", "))
	}
	return more, ""
}

// largerThanAllowed returns what of the grown gang is more than its queue allows.
func (b *Book) largerThanAllowed(e *entry, more []workload.PodSet) error {
	rules := b.queues[e.Queue].Rules
	if len(more) == 0 || rules.Limits.Pods == 0 && len(rules.Limits.Resources) == 0 {
		return nil
	}
	grown := e.Workload
	grown.PodSets = slices.Concat(grown.PodSets, more)
	return rules.TooLarge(&grown)
}

// wrapper is the kind of workloads of several objects, not all of which are of Ray.
const wrapper = "AppWrapper"

// surplus are the pods of wrapped objects, such as a Deployment that somebody made
// larger, for which there is no place and of whose number nobody tells.
func (b *Book) surplus(e *entry) (surplus []string) {
	g := b.gangs[gangKey{e.Cluster, e.ID}]
	if g == nil || e.Kind != wrapper {
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

// joinOthers has the new pods of a set go where affinity and anti-affinity to the
// pods that are there let them.
func (b *Book) joinOthers(e *entry, set *workload.PodSet) {
	for _, t := range set.Template.Together {
		if values := b.domains(e, t.TopologyKey, append(slices.Clone(t.PodSets), set.Name)); len(values) > 0 {
			set.Template.Affinity = requiring(set.Template.Affinity, workload.Requirement{Key: t.TopologyKey, Operator: "In", Values: values[:1]})
		}
	}
	apart := func(key string, sets []string) {
		if values := b.domains(e, key, sets); len(values) > 0 {
			set.Template.Affinity = requiring(set.Template.Affinity, workload.Requirement{Key: key, Operator: "NotIn", Values: values})
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

// domains are the values of a node label where pods of the sets have places.
func (b *Book) domains(e *entry, key string, sets []string) (values []string) {
	for _, p := range e.Placements {
		n := b.nodes[admission.NodeKey{Cluster: e.Cluster, Name: p.Node}]
		if value, labelled := n.Labels[key]; labelled && slices.Contains(sets, p.PodSet) && !slices.Contains(values, value) {
			values = append(values, value)
		}
	}
	slices.Sort(values)
	return values
}

// requiring adds a requirement to each alternative.
func requiring(terms []workload.NodeTerm, r workload.Requirement) []workload.NodeTerm {
	if len(terms) == 0 {
		return []workload.NodeTerm{{Labels: []workload.Requirement{r}}}
	}
	all := slices.Clone(terms)
	for i := range all {
		all[i].Labels = append(slices.Clone(all[i].Labels), r)
	}
	return all
}

// strangeGroups are worker groups that somebody added to the object.
func (e *entry) strangeGroups() []string {
	var strange []string
	for name, size := range e.sizes {
		if size > 0 && !slices.ContainsFunc(e.PodSets, func(set workload.PodSet) bool { return set.Name == name }) {
			strange = append(strange, fmt.Sprintf("%q", name))
		}
	}
	slices.Sort(strange)
	return strange
}

// timeLeft is for how long a gang is declared to run on; zero when that is not
// known or over.
func (b *Book) timeLeft(e *entry, now time.Time) time.Duration {
	if declared := b.runTime(e); declared > 0 {
		return max(0, e.Times.Admitted.Add(declared).Sub(now))
	}
	return 0
}

func (b *Book) stopGrowing(e *entry) {
	if e.grows != nil {
		e.grows = nil
		b.admission.StopGrowing(e.ID)
	}
}

// noteGrowth says why a gang that grows waits for places.
func (b *Book) noteGrowth(e *entry, why workload.Reason, now time.Time) {
	if e.grows == nil || e.Reason != nil && e.Reason.Kind != workload.ReasonGrowing {
		return // what is wrong with it matters more
	}
	b.explain(e, e.grows.reason(why), now)
}

func (g *growth) reason(why workload.Reason) workload.Reason {
	var asked []string
	for _, set := range g.sets {
		asked = append(asked, fmt.Sprintf("%d more of %q", set.Count, set.Name))
	}
	why.Kind = workload.ReasonGrowing
	why.Message = fmt.Sprintf("it runs, and %s wait at their gates: %s", strings.Join(asked, ", "), why.Message)
	return why
}

// growthReason is why a gang that grows waits, nil when it does not.
func (b *Book) growthReason(e *entry) *workload.Reason {
	if e.grows == nil {
		return nil
	}
	if why := b.admission.Reason(e.ID); why != nil {
		reason := e.grows.reason(*why)
		return &reason
	}
	return nil
}

// grown reserves what a gang has asked for.
func (b *Book) grown(e *entry, g admission.Admission, now time.Time) {
	sets := slices.Clone(e.PodSets) // others of the same shape share them
	for i := range sets {
		for _, more := range e.grows.sets {
			if more.Name == sets[i].Name {
				sets[i].Count += more.Count
				sets[i].Resized += more.Count
			}
		}
	}
	e.grows, e.yield = nil, nil
	b.charge(e, -1)
	e.PodSets, e.Placements, e.Flavors = sets, g.Placements, g.Flavors
	b.charge(e, 1)
	b.moved(e)
	b.changed.grown++
	if e.Reason != nil && e.Reason.Kind == workload.ReasonGrowing {
		e.Reason = nil
	}
	delete(b.lazy, e.ID)
	b.tell(e, now)
	b.desire(e, event.Present, now)
}

// moved notes that a started gang has other places.
func (b *Book) moved(e *entry) {
	b.changed.move(e)
	b.changed.workloads[e.ID] = e
	b.countStrays(gangKey{e.Cluster, e.ID})
}

// asSubmitted brings the pod sets back to the sizes that were submitted, which a
// new attempt begins with.
func (e *entry) asSubmitted() {
	if !slices.ContainsFunc(e.PodSets, func(set workload.PodSet) bool { return set.Resized != 0 }) {
		return
	}
	e.PodSets = slices.Clone(e.PodSets)
	for i := range e.PodSets {
		e.PodSets[i].Count -= e.PodSets[i].Resized
		e.PodSets[i].Resized = 0
	}
}
