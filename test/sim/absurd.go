package sim

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/test/stack"
)

// absurdities are put where a manifest has a quantity.
var absurdities = []any{
	"1e99999999", "-5", "9223372036854775807Ei", "NaN", "", math.MaxInt64, -1, 1e300, "1m", strings.Repeat("9", 5000), nil, true, []any{},
}

// absurdNames are put where a manifest has its name.
var absurdNames = []string{
	strings.Repeat("n", 6000), "UPPER", "line\nbreak", "nul\x00", "../../other", "\x1b[2Jgone", "muster.dev/workload", strings.Repeat("a", 63),
}

// absurd submits what no friend would, and cancels it as long as it is there.
func (s *submitter) absurd(f TimedFault) string {
	s.count++
	name := fmt.Sprintf("hostile-%d", s.count)
	tree := map[string]any{}
	if err := json.Unmarshal([]byte(stack.RayCluster(name, 1+int(f.Pick%7), 1)), &tree); err != nil {
		panic(err) // it is written here
	}
	metadata := tree["metadata"].(map[string]any)
	how := ""
	switch f.Pick / 64 % 4 {
	case 0:
		value := absurdities[f.Pick/1024%uint64(len(absurdities))]
		how = fmt.Sprintf("quantities %.20v", value)
		replace(tree, value, "cpu", "memory", "nvidia.com/gpu")
	case 1:
		value := absurdities[f.Pick/1024%uint64(len(absurdities))]
		how = fmt.Sprintf("sizes %.20v", value)
		replace(tree, value, "replicas", "minReplicas", "maxReplicas")
	case 2:
		metadata["name"] = absurdNames[f.Pick/1024%uint64(len(absurdNames))]
		how = fmt.Sprintf("name %.20q", metadata["name"])
	case 3:
		victim := s.all[f.Pick/1024%uint64(len(s.all))]
		metadata["labels"] = map[string]any{"muster.dev/workload": victim.id, "muster.dev/attempt": "1", strings.Repeat("l", 300): "\x00"}
		how = "labels of " + victim.name
	}
	manifest, err := json.Marshal(tree)
	if err != nil {
		return ""
	}
	envelope := event.Envelope{SpecVersion: event.SpecVersion, ID: name, Source: submitterSource, Type: event.SubmitType, DataContentType: "application/json", Data: manifest}
	data, err := envelope.Encode()
	if err != nil {
		return ""
	}
	id := event.WorkloadID(submitterSource, name)
	s.hostile[id] = true
	s.send(event.SubmitSubject("loose"), name, data, func() {})
	s.w.after(f.For, func() { s.withdraw(id) })
	return how
}

// withdraw cancels a hostile workload until it is live no more.
func (s *submitter) withdraw(id workload.ID) {
	if s.w.disk.live[id] != nil {
		s.cancel(&submission{id: id, queue: "loose"})
	}
	s.w.after(tryAgain, func() { s.withdraw(id) })
}

// replace puts a value wherever one of the keys is.
func replace(tree any, value any, keys ...string) {
	switch t := tree.(type) {
	case map[string]any:
		for key := range t {
			if slices.Contains(keys, key) {
				t[key] = value
			} else {
				replace(t[key], value, keys...)
			}
		}
	case []any:
		for _, each := range t {
			replace(each, value, keys...)
		}
	}
}

// liar is a cluster whose keys were stolen. NATS lets them publish to subjects of
// that cluster only, whatever they say there.
const liar = "stolen"

// lie publishes what is not so about a gang or node of the other cluster.
func (s *submitter) lie(f TimedFault) string {
	victim := s.all[f.Pick%uint64(len(s.all))]
	now := s.w.now.UnixNano()
	sessions := []int64{now, math.MaxInt64, 1, -1, now + int64(100*365*24*time.Hour)}
	version := event.Version{Session: sessions[f.Pick/64%uint64(len(sessions))], Seq: f.Pick}
	cluster := []string{liar, clusterName}[f.Pick/512%2]
	node := fmt.Sprintf("node-%d", f.Pick/1024%5)
	var subject string
	var payload event.Payload
	switch f.Pick / 8192 % 5 {
	case 0:
		subject = event.StatusSubject(liar, victim.id)
		payload = &event.GangStatus{Workload: victim.id, Cluster: cluster, Attempt: 1, Epoch: s.w.disk.epoch, Session: version.Session, Created: true, Gone: true, Released: true}
	case 1:
		subject = event.NodeSubject(liar, node)
		payload = &event.NodeRemoved{Version: version, Cluster: cluster, Node: node}
	case 2:
		subject = event.NodeSubject(liar, node)
		payload = &event.NodeObserved{Version: version, Node: capacity.Node{
			Cluster: cluster, Name: node, Ready: true, Allocatable: resource.List{"cpu": math.MaxInt64, "memory": -1, "nvidia.com/gpu": math.MaxInt64, resource.Pods: 1 << 40},
		}}
	case 3:
		subject = event.GangSubject(liar, victim.id)
		payload = &event.GangObserved{Version: version, Cluster: cluster, Workload: victim.id}
	case 4:
		subject = event.SyncedSubject(liar)
		payload = &event.CapacitySynced{Version: version, Cluster: cluster}
	}
	s.count++
	envelope, err := event.New(fmt.Sprintf("lie-%d", s.count), "muster/"+liar, s.w.now, payload)
	if err != nil {
		return ""
	}
	data, err := envelope.Encode()
	if err != nil {
		return ""
	}
	s.send(subject, envelope.ID, data, func() {})
	return fmt.Sprintf("%s about %s, session %d, on %s", payload.EventType(), payload.CloudEventSubject(), version.Session, subject)
}
