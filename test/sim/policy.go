package sim

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/resource"
)

// The policy of a ruled seed and what it allows, written from docs/queues.md and the
// comments of migrations/0006_quota.sql: a tree of cohorts, of one flavor and one
// resource. Nothing here is shared with package quota but the names of its fields.

const (
	ruledFlavor   = "any"
	ruledResource = resource.Name("nvidia.com/gpu")
	noLimit       = int64(-1)
)

// share is what a queue has, and whom it may evict.
type share struct {
	name, cohort  string
	nominal       int64
	borrow, lend  int64 // limits; noLimit for none
	within, takes string
	lower         bool // it evicts lower priorities when it has to borrow
	stop          string
	held          string // kind of the hold by an operator; empty for none
}

// stopped reports whether nothing is to be admitted in the queue.
func (s share) stopped() bool { return s.stop != "" || s.held != "" }

// policy is all that the queue configuration of a ruled seed says.
type policy struct {
	queues   []share
	above    map[string]string // the cohort above a cohort
	own      map[string]int64  // quota of cohorts
	fair     bool
	halfLife int64 // seconds
	revision int   // counts the changes
	generous bool  // see BugGenerous
}

// ruledQueues are the queues of a ruled seed.
var ruledQueues = []string{"loose", "strict", "third"}

// drawPolicy draws the policy that a ruled seed begins with. All nominal quota
// together is no more than the nodes have.
func drawPolicy(random *rand.Rand) policy {
	p := policy{above: map[string]string{"east": "all"}, own: map[string]int64{"all": random.Int64N(3), "east": 0, "apart": 0}}
	p.fair = random.IntN(2) == 0
	p.halfLife = []int64{0, 5, 60}[random.IntN(3)]
	for _, name := range ruledQueues {
		s := share{name: name, cohort: []string{"all", "all", "east"}[random.IntN(3)], nominal: 3 + random.Int64N(4), borrow: noLimit, lend: noLimit}
		if random.IntN(4) == 0 {
			s.borrow = random.Int64N(4)
		}
		if random.IntN(4) == 0 {
			s.lend = random.Int64N(s.nominal)
		}
		s.within = []string{quota.Never, quota.LowerPriority, quota.LowerOrNewerEqualPriority}[random.IntN(3)]
		s.takes = []string{quota.Any, quota.Any, quota.LowerPriority, quota.Never}[random.IntN(4)]
		s.lower = s.takes != quota.Never && random.IntN(3) == 0
		p.queues = append(p.queues, s)
	}
	return p
}

// clone is a copy that may be changed.
func (p policy) clone() policy {
	p.queues, p.above, p.own = slices.Clone(p.queues), maps.Clone(p.above), maps.Clone(p.own)
	return p
}

func (p policy) queue(name string) *share {
	i := slices.IndexFunc(p.queues, func(s share) bool { return s.name == name })
	return &p.queues[i]
}

// config is the policy as queue-manager reads it.
func (p policy) config() (c quota.Config) {
	var cohorts, queues []any
	for _, name := range sortedKeys(p.own) {
		cohorts = append(cohorts, map[string]any{"name": name, "parentName": p.above[name], "resourceGroups": quotasOf(p.own[name], nil)})
	}
	for _, s := range p.queues {
		queues = append(queues, s.config(p.generous))
	}
	all := map[string]any{"resourceFlavors": []any{map[string]any{"name": ruledFlavor}}, "cohorts": cohorts, "clusterQueues": queues}
	for _, s := range p.queues {
		if s.held != "" {
			all[s.held] = append(listOf(all[s.held]), map[string]any{"name": s.name, "by": byOperator, "since": "2026-01-01T00:00:00Z"})
		}
	}
	if p.fair {
		all["fairSharing"] = map[string]any{"enable": true, "usageHalfLifeSeconds": p.halfLife}
	}
	if p.halfLife > 0 {
		all["admissionFairSharing"] = map[string]any{"usageHalfLifeTime": fmt.Sprintf("%ds", p.halfLife), "usageSamplingInterval": "1s"}
	}
	text, err := json.Marshal(all)
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err == nil {
		err = c.Validate()
	}
	if err != nil {
		panic(fmt.Sprintf("the drawn policy is not valid: %v", err))
	}
	return c
}

// config is the ClusterQueue of a share. Where the policy is generous it reclaims nothing.
func (s share) config(generous bool) map[string]any {
	limits := map[string]any{}
	if s.cohort != "" && s.borrow != noLimit {
		limits["borrowingLimit"] = fmt.Sprint(s.borrow)
	}
	if s.cohort != "" && s.lend != noLimit {
		limits["lendingLimit"] = fmt.Sprint(min(s.lend, s.nominal))
	}
	if generous {
		s.takes = quota.Never
	}
	preemption := map[string]any{"withinClusterQueue": s.within, "reclaimWithinCohort": s.takes}
	if s.lower && !generous {
		preemption["borrowWithinCohort"] = map[string]any{"policy": quota.LowerPriority}
	}
	strategy, scope := quota.BestEffortFIFO, quota.UsageBasedAdmissionFairSharing
	if s.name == "strict" {
		strategy, scope = quota.StrictFIFO, quota.NoAdmissionFairSharing
	}
	return map[string]any{
		"name": s.name, "cohortName": s.cohort, "admissionScope": map[string]any{"admissionMode": scope}, "queueingStrategy": strategy, "quotaCheckStrategy": quota.IgnoreUndeclared,
		"resourceGroups": quotasOf(s.nominal, limits), "preemption": preemption, "stopPolicy": s.stop,
	}
}

// quotasOf are the resource groups of a cohort or queue: a nominal quota of the one resource
// in the one flavor, with limits.
func quotasOf(nominal int64, limits map[string]any) []any {
	amounts := map[string]any{"name": ruledResource, "nominalQuota": fmt.Sprint(nominal)}
	maps.Copy(amounts, limits)
	return []any{map[string]any{"coveredResources": []any{ruledResource}, "flavors": []any{
		map[string]any{"name": ruledFlavor, "resources": []any{amounts}},
	}}}
}

func listOf(list any) []any {
	is, _ := list.([]any)
	return is
}
