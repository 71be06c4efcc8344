package world

import (
	"fmt"
	"slices"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// settle decides and plays the clusters until nothing happens any more, and
// returns the steps since the last time.
func (r *World) settle() []Step {
	r.settleMessages()
	steps := r.steps
	r.steps = nil
	return steps
}

func (r *World) settleMessages() {
	for {
		r.state.Decide(r.now)
		changes := r.state.Flush()
		if changes.Empty() {
			return
		}
		r.note(changes)
		for _, message := range changes.Messages {
			if command, is := message.Payload.(*event.GangCommand); is {
				r.obey(command)
			}
		}
	}
}

// note keeps what the changes say of workloads.
func (r *World) note(changes state.Changes) {
	keep := func(record workload.Record) { r.records[record.ID] = &record }
	for _, added := range changes.Added {
		keep(added.Record)
	}
	for _, updated := range changes.Updated {
		keep(updated)
	}
	for _, message := range changes.Messages {
		if changed, is := message.Payload.(*event.WorkloadChanged); is {
			r.steps = append(r.steps, Step{At: message.At, Record: changed.Record})
		}
	}
}

// obey is the dispatcher and the cluster behind it: what is commanded is so at
// once.
func (r *World) obey(command *event.GangCommand) {
	record := r.records[command.Workload]
	if record == nil || command.Attempt != record.Attempt {
		return
	}
	switch {
	case command.State == event.Present && !command.Created:
		status := r.statusOf(record)
		status.Created = true
		r.state.Status(status, r.now, r.now)
		r.state.Gang(&event.GangObserved{
			Version: r.next(), Cluster: command.Cluster, Workload: command.Workload, Pods: podsOf(command.PodSets, command.Placements, command.Attempt),
		}, r.now, r.now)
	case command.State == event.Present && (command.GiveUp != nil || command.Yield != ""):
		r.giveUp(record, command)
	case command.State == event.Absent && !r.linger:
		r.release(command.Workload)
	}
}

// giveUp is KubeRay where worker groups have become smaller: their pods go at once.
func (r *World) giveUp(record *workload.Record, command *event.GangCommand) {
	status := r.statusOf(record)
	status.Created, status.Yielded, status.Sizes = true, command.Yield, map[string]int{}
	places := slices.Clone(command.Placements)
	for _, set := range command.PodSets {
		if set.Role != workload.RoleWorker {
			continue
		}
		status.Sizes[set.Name] = set.Count
		if command.GiveUp == nil {
			continue
		}
		if size, given := command.GiveUp.Sizes[set.Name]; given && size < set.Count {
			status.Sizes[set.Name] = size
			leave(places, set.Name, set.Count-size, command.GiveUp.Leave)
		}
	}
	status.Keeps = status.Sizes
	r.state.Status(status, r.now, r.now)
	r.state.Gang(&event.GangObserved{
		Version: r.next(), Cluster: command.Cluster, Workload: command.Workload, Pods: podsOf(command.PodSets, places, command.Attempt),
	}, r.now, r.now)
}

// leave takes that many pods of a set away from places, first from those to be left.
func leave(places []workload.Placement, set string, pods int, first []workload.Placement) {
	for _, p := range slices.Concat(first, places) {
		for i := range places {
			if at := &places[i]; at.PodSet == set && p.PodSet == set && at.Node == p.Node {
				gone := min(pods, p.Pods, at.Pods)
				at.Pods -= gone
				pods -= gone
			}
		}
	}
}

// release lets all pods of a workload go.
func (r *World) release(id workload.ID) {
	record := r.records[id]
	if !record.Holding {
		return
	}
	r.state.Gang(&event.GangObserved{Version: r.next(), Cluster: record.Cluster, Workload: id}, r.now, r.now)
	status := r.statusOf(record)
	status.Gone, status.Released = !record.Phase.Final(), true
	r.state.Status(status, r.now, r.now)
}

func (r *World) statusOf(record *workload.Record) *event.GangStatus {
	return &event.GangStatus{Workload: record.ID, Cluster: record.Cluster, Attempt: record.Attempt, Epoch: epoch}
}

// podsOf are the pods of a gang on their places, all ready.
func podsOf(sets []workload.PodSet, places []workload.Placement, attempt int) []event.GangPod {
	templates := map[string]*workload.Template{}
	for i := range sets {
		templates[sets[i].Name] = &sets[i].Template
	}
	var pods []event.GangPod
	for _, place := range places {
		for range place.Pods {
			pods = append(pods, event.GangPod{
				Name: fmt.Sprintf("%s-%d", place.PodSet, len(pods)), Attempt: attempt, PodSet: place.PodSet, Node: place.Node,
				Phase: "Running", Ready: true, Requests: templates[place.PodSet].Requests,
			})
		}
	}
	return pods
}
