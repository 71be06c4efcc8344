package state

import (
	"fmt"
	"slices"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// forgottenFor is how long the command to forget a workload stays readable.
const forgottenFor = time.Hour

// emitCommand emits a command to the dispatcher. The manifest is added from Postgres when the
// message is written.
func (l *lifecycle) emitCommand(e *entry, state string, now time.Time) {
	e.removalSent = state != event.Present
	if e.removalSent {
		e.askAt = now.Add(releaseInquiryInterval)
	}
	command, ttl := l.command(e, state), time.Duration(0)
	command.Order = l.commandOrder()
	if state == event.Present && e.Phase == workload.Admitted {
		e.permitted = e.permitted && command.Permitted
	}
	if state == event.Present && e.scaleDown != nil {
		e.scaleDown.id, e.scaleDown.confirmed = l.scaleDownID(command.Order), false
		command.Yield = e.scaleDown.id
	}
	if state == event.Forgotten {
		ttl = forgottenFor
	}
	l.emit(now, event.DispatchSubject(e.Cluster, e.ID), ttl, command)
}

func (l *lifecycle) command(e *entry, state string) *event.GangCommand {
	rules := l.rules(e)
	command := &event.GangCommand{
		Workload: e.ID, Cluster: e.Cluster, Attempt: e.Attempt, Epoch: l.epoch, State: state,
		Queue: e.Queue, Kind: e.Kind, Namespace: e.Namespace, Name: e.ObjectName(),
		ForceAfter: rules.ForceAfter, Trusted: rules.Placement == workload.Trusted,
	}
	if e.Life.Moves {
		command.Home = e.MadeIn()
	}
	if state != event.Forgotten {
		_, places := e.commandedPlaces()
		command.Placements = l.withDomains(e, places)
	}
	if p := e.Provisioning; p != nil && p.Open {
		command.Provision = &event.ProvisionCommand{
			Name: p.Name, Number: p.Number, Class: p.Class, Parameters: p.Parameters, Merge: p.Merge, NodeLabels: p.NodeLabels, Pods: p.Pods,
		}
	}
	if state == event.Present || state == event.Provision {
		command.PodPolicy, command.ObjectPolicy = rules.PodsOf(&e.Workload), rules.Objects
		command.Identity, _ = rules.IdentityOf(&e.Workload)
		command.Permitted = needsPermission(e, rules)
		command.Carries = rules.CarriedTo(e.Cluster)
		command.Whole = rules.Start == workload.StartWhole
		command.Created = !e.Times.Dispatched.IsZero()
		command.EvictAt = e.EvictAt
		sets, _ := e.commandedPlaces()
		command.PodSets = workload.WithoutAsks(sets) // dispatcher does not use them
		if e.attemptState != nil {
			command.GiveUp = e.giveUp
		}
		command.Terms = addedTerms(e)
		flavors := e.Flavors
		if state == event.Provision {
			flavors = e.Provisioning.Flavors
		}
		for _, f := range flavors {
			command.Terms = append(command.Terms, l.admission.Quota().Terms(f))
		}
	}
	return command
}

// needsPermission reports whether a gang may be created and kept only while its cluster is
// permitted to. A bundle may have objects that no dispatcher can stop alone, and an object
// of a cluster starts nowhere else.
func needsPermission(e *entry, rules workload.Rules) bool {
	return rules.OnLostCluster == workload.FailOver && e.Kind != workload.KindAppWrapper && e.Home() == ""
}

// commandedPlaces are the sizes and places in the command.
func (e *entry) commandedPlaces() ([]workload.PodSet, []workload.Placement) {
	if e.attemptState != nil && e.scaleDown != nil {
		return e.scaleDown.sets, e.scaleDown.places
	}
	return e.PodSets, e.Placements
}

// scaleDownID names a command to give places up, for ever.
func (l *lifecycle) scaleDownID(order int64) string { return fmt.Sprintf("%d-%d", l.epoch, order) }

// withDomains returns places of a workload, those of pod sets with slices
// with the domains that keep these together.
func (l *lifecycle) withDomains(e *entry, places []workload.Placement) []workload.Placement {
	levels := map[string]string{}
	for i := range e.PodSets {
		set := l.inTopology(e, &e.PodSets[i])
		if set.Topology != nil && set.Topology.SliceSize > 1 {
			levels[set.Name] = set.Topology.SliceLevel
		}
	}
	if len(levels) == 0 {
		return places
	}
	places = slices.Clone(places)
	for i := range places {
		if n := l.nodes[admission.NodeKey{Cluster: e.Cluster, Name: places[i].Node}]; n != nil {
			places[i].Domain, _ = workload.DomainOf(n.Labels, levels[places[i].PodSet])
		}
	}
	return places
}
