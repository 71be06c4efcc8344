package app_test

import (
	"slices"
	"strings"
	"testing"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// TestPlacesAreReplacedThoughQuotaWasLowered: a queue uses more than the quota that is left of it, and
// a node of its gang is lost. The gang gets another place there, in the same attempt, and no
// term ends for the guards of the ledger; another gang waits until there is quota again.
func TestPlacesAreReplacedThoughQuotaWasLowered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.countTerms()
	w.node("a", 1)
	w.node("b", 1)
	quota := strings.Replace(oneQueue, "admissionChecks: [rayjob-gpu]", "stopPolicy: None", 1)
	w.apply(strings.Replace(quota, "nominalQuota: 1", "nominalQuota: 2", 1))
	gang := w.submit(gangOf("gang", "user-queue", 2))
	command := w.started(gang, 1)
	w.node("spare", 2)
	w.apply(quota) // one GPU less
	other := w.submit(gangOf("other", "user-queue", 1))
	w.waits(other, workload.ReasonQuota)

	head := command.Placements[slices.IndexFunc(command.Placements, func(p workload.Placement) bool { return p.PodSet == "headgroup" })].Node
	lost := map[string]string{"a": "b", "b": "a"}[head]
	w.publish(event.NodeSubject(cluster, lost), &event.NodeRemoved{Version: w.nextVersion(), Cluster: cluster, Node: lost})
	kept := *command
	kept.Placements = slices.DeleteFunc(slices.Clone(command.Placements), func(p workload.Placement) bool { return p.Node == lost })
	w.pods(&kept)
	replaced := await(w, "its place moves", func(e *event.GangCommand) bool {
		return e.Workload == gang && e.Attempt == 1 && e.State == event.Present && len(e.Placements) > 0 &&
			!slices.ContainsFunc(e.Placements, func(p workload.Placement) bool { return p.Node == lost })
	})
	if !slices.ContainsFunc(replaced.Placements, func(p workload.Placement) bool { return p.Node == "spare" }) {
		t.Errorf("its places are %+v, want one on the spare node", replaced.Placements)
	}
	if terms := w.terms(); terms > fewTerms {
		t.Errorf("it took %d terms, want at most %d", terms, fewTerms)
	}
	w.waits(other, workload.ReasonQuota)
	w.checkReplay()
}
