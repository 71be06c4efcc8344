package sim

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// shapeMemory is what a process remembers of the pod sets in the ledger.
type shapeMemory struct {
	life  int // of the process
	epoch int64
	known map[string]bool
}

// remembered returns the memory of a process for a term.
func (m *machine) remembered(epoch int64) map[string]bool {
	s := &m.shapes
	if s.life != m.life || s.epoch != epoch && m.w.Bug != BugOldMemory {
		*s = shapeMemory{m.life, epoch, map[string]bool{}}
	}
	return s.known
}

// setQuotas gives each queue the quota of its largest gang, so that it is often used
// up while places move.
func (l *ledger) setQuotas(largest map[string]int64) {
	l.bounds = map[usageKey]int64{}
	var queues []string
	for _, name := range slices.Sorted(maps.Keys(largest)) {
		l.bounds[usageKey{"clusterQueue " + name, "any", "nvidia.com/gpu"}] = largest[name]
		queues = append(queues, fmt.Sprintf(`{"name": %q, "queueingStrategy": %q, "quotaCheckStrategy": "IgnoreUndeclared", "resourceGroups": [
			{"coveredResources": ["nvidia.com/gpu"], "flavors": [{"name": "any", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": "%d"}]}]}]}`,
			name, map[string]string{"loose": quota.BestEffortFIFO, "strict": quota.StrictFIFO}[name], largest[name]))
	}
	config := `{"resourceFlavors": [{"name": "any"}], "clusterQueues": [` + strings.Join(queues, ", ") + `]}`
	if err := json.Unmarshal([]byte(config), &l.policy); err != nil {
		panic(err) // it is written here
	}
}

// tidy removes the pod sets that no live workload has.
func (l *ledger) tidy() {
	wanted := map[string]bool{}
	for _, r := range l.live {
		wanted[shapeOf(r.Record)] = true
	}
	l.real.tidied(l.epoch)
	maps.DeleteFunc(l.shapes, func(shape string, _ bool) bool { return !wanted[shape] })
}

func shapeOf(r workload.Record) string {
	encoded, _ := json.Marshal(r.PodSets) // plain data can always be encoded
	return string(encoded)
}
