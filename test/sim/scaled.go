package sim

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// In a scaled seed there is one node, and queues ask an autoscaler for others.

// firstScaled is the first seed that may be scaled: the worlds of those before it are as they
// were.
const firstScaled = 6000

// scaled reports that queues ask for nodes in this seed: so it is in every second from
// firstScaled on.
func (w *World) scaled() bool { return w.Seed >= firstScaled && w.Seed%2 == 0 }

// ScaledSeeds returns that many seeds with an autoscaler; in every second of them it sees pending
// pods only. Seeds before firstScaled have none, so a run that begins with the first adds some.
func ScaledSeeds(n int) (seeds []uint64) {
	for i := range uint64(max(n, 0)) {
		seed := uint64(firstScaled) + 2 + 4*(i/2)
		if i%2 == 1 {
			seed = firstShown + 4*(i/2)
		}
		seeds = append(seeds, seed)
	}
	return seeds
}

// mostGrown is what a gang may ask for when its owner has made it larger (resize): six workers
// of four GPUs. With less quota it would wait for ever.
const mostGrown = 6 * 4

// scale gives each queue twice the quota of its largest gang, at least what one may grow to, and
// has it ask for nodes.
func (l *ledger) scale(largest map[string]int64) {
	l.bounds, l.scaledQuota = map[usageKey]int64{}, map[string]int64{}
	var queues []string
	for _, name := range slices.Sorted(maps.Keys(largest)) {
		nominal := max(2*largest[name], mostGrown)
		l.scaledQuota[name] = nominal
		l.bounds[usageKey{"clusterQueue " + name, "any", "nvidia.com/gpu"}] = nominal
		queues = append(queues, fmt.Sprintf(`{"name": %q, "queueingStrategy": %q, "quotaCheckStrategy": "IgnoreUndeclared", "admissionChecks": ["nodes"], "resourceGroups": [
			{"coveredResources": ["nvidia.com/gpu"], "flavors": [{"name": "any", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": "%d"}]}]}]}`,
			name, map[string]string{"loose": quota.BestEffortFIFO, "strict": quota.StrictFIFO}[name], nominal))
	}
	class := `"provisioningClassName": "played"`
	if l.w.shown() {
		class = fmt.Sprintf(`"provisioningClassName": %q, "parameters": {%q: "60"}`, workload.PlaceholderClass, workload.DeadlineParameter)
	}
	config := `{"resourceFlavors": [{"name": "any"}], "clusterQueues": [` + strings.Join(queues, ", ") + `],
		"admissionChecks": [{"name": "nodes", "controllerName": "kueue.x-k8s.io/provisioning-request", "parameters": {"apiGroup": "kueue.x-k8s.io", "kind": "ProvisioningRequestConfig", "name": "nodes"}}],
		"provisioningRequestConfigs": [{"name": "nodes", ` + class + `, "retryStrategy": {"backoffLimitCount": 1000, "backoffBaseSeconds": 2, "backoffMaxSeconds": 10}}]}`
	if err := json.Unmarshal([]byte(config), &l.policy); err != nil {
		panic(err) // it is written here
	}
}

// asksForNodes reports whether a workload holds its quota while nodes are asked for.
func asksForNodes(r workload.Record) bool {
	return r.Phase == workload.Queued && r.Hold == nil && r.Provisioning != nil && r.Provisioning.Open
}

// checkScaled looks at the ledger after a commit of a scaled seed: quota that is held while
// nodes are asked for counts as used, and a gang that has asked starts with its request
// provisioned.
func (c *checker) checkScaled(changes state.Changes) {
	l := c.w.disk
	if !c.w.scaled() || !l.settled() {
		return
	}
	used := map[string]int64{}
	for id, r := range l.live {
		used[r.Queue] += gpusOf(l.holds[id])
		if asksForNodes(r.Record) {
			used[r.Queue] += asked(r.Record)
			if r.Provisioning.Cluster != clusterName {
				c.made[madeElsewhere]++
			}
		}
	}
	for _, name := range sortedKeys(used) {
		if nominal, bounded := l.scaledQuota[name]; bounded && used[name] > nominal {
			c.w.breach("G2", "queue %s uses %d with what it holds for gangs that ask for nodes, of %d", name, used[name], nominal)
		}
	}
	for _, reserved := range changes.Reserved {
		x := l.live[reserved.Workload]
		if x == nil || x.Provisioning == nil || !x.Provisioning.Open || c.attempts[x.ID] == x.Attempt {
			continue
		}
		if name := x.Provisioning.Name; !c.w.cluster.scaler.ready[name] {
			c.w.breach("G1", "%s was admitted with request %s, which was not provisioned", c.w.submits.nameOf(x.ID), name)
		}
	}
}

// withoutRequest is a record as a term reads it that does not know of requests for nodes.
func withoutRequest(r workload.Record) workload.Record {
	r.Provisioning = nil
	return r
}
