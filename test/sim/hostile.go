package sim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/test/stack"
)

// drawHostile draws what others do on purpose.
func drawHostile(w *World) (timed []TimedFault) {
	random := rand.New(rand.NewPCG(w.Seed, uint64(classHostile)+100))
	kinds := []Fault{Absurd, Forged, Forged, Forged, Lie, Lie}
	for range 8 + random.IntN(16) {
		timed = append(timed, TimedFault{
			At: time.Duration(random.Int64N(int64(faultsFor))).Truncate(time.Millisecond), Fault: kinds[random.IntN(len(kinds))],
			Pick: random.Uint64() >> 12, For: time.Second + time.Duration(random.Int64N(int64(2*time.Minute))).Truncate(time.Millisecond),
		})
	}
	return timed
}

// label is the workload that a pod's labels name, whatever made it.
func (p *pod) label() workload.ID { return cmp.Or(p.workload, p.claims) }

// forge makes a pod with the labels of a gang that did not make it: of one that is
// there, or of the next one that comes, while its own pods are not ready yet.
func (c *cluster) forge(f TimedFault) string {
	keys := slices.Sorted(maps.Keys(c.objects))
	if f.Pick&(1<<40) != 0 {
		c.lurking = append(c.lurking, lurker{f, c.w.now.Add(f.For)})
		return "for the next gang, for " + f.For.String()
	}
	if len(keys) == 0 {
		return ""
	}
	o := c.objects[keys[f.Pick%uint64(len(keys))]]
	return c.forgeOf(o, o.sets[f.Pick/64%uint64(len(o.sets))], f)
}

// lurker waits for a gang whose pods it can forge.
type lurker struct {
	f     TimedFault
	until time.Time
}

// lure has all who lurk forge a pod for each pod of an object that was just created.
func (c *cluster) lure(o *object) {
	for _, l := range c.lurking {
		left := l.until.Sub(c.w.now)
		if left <= 0 {
			continue
		}
		l.f.For = left
		c.w.after(min(left, 100*time.Millisecond+time.Duration(l.f.Pick%1000)*time.Millisecond), func() {
			for _, set := range o.sets {
				for range set.Count {
					c.w.tell("forged: %s", c.forgeOf(o, set, l.f))
				}
			}
		})
	}
	c.lurking = nil
}

// unseenOwner is the uid of a controller that is nowhere.
const unseenOwner = "uid-forged"

func (c *cluster) forgeOf(o *object, set workload.PodSet, f TimedFault) string {
	c.intruders++
	p := &pod{
		namespace: o.namespace, name: fmt.Sprintf("forged-%d", c.intruders), uid: c.uid(), claims: o.workload, attempt: o.attempt, set: set.Name,
		requests: resource.List{"cpu": 100, resource.Pods: 1},
	}
	how := ""
	switch f.Pick / 1024 % 4 {
	case 0:
		how = "that nothing controls"
	case 1:
		p.namespace, p.owner, p.ownerName, how = "other", o.uid, o.name, "in another namespace"
	case 2:
		p.owner, p.ownerName, how = unseenOwner, o.name, "with a wrong owner"
	case 3:
		p.gated, how = true, "behind the gate"
	}
	if c.w.Bug == BugByLabels { // who looks at labels only sees no difference to this
		p.namespace, p.owner, p.ownerName = o.namespace, o.uid, o.name
	}
	if !p.gated {
		names := slices.Sorted(maps.Keys(c.nodes))
		p.node = names[f.Pick/4096%uint64(len(names))]
		if !c.nodes[p.node].Ready || len(c.overCommitted(p.node, p.requests)) > 0 {
			return ""
		}
		p.ready = true
	}
	c.pods[p.namespace+"/"+p.name] = p
	c.changed("pod " + p.namespace + "/" + p.name)
	c.w.after(f.For, func() { c.deletePod(p, false) })
	return fmt.Sprintf("%s of %s, %s, for %s", p.name, c.w.submits.nameOf(o.workload), how, f.For)
}

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

// readied notes a pod of a gang that has become ready.
func (c *checker) readied(p *pod) {
	key := attemptKey{p.workload, p.attempt}
	if c.ready[key] == nil {
		c.ready[key] = map[string]bool{}
	}
	c.ready[key][p.uid] = true
}

// readKey names an attempt for a term.
type readKey struct {
	epoch int64
	attemptKey
}

// reads notes what a term learns of what was created for gangs.
func (c *checker) reads(t *term, batch []bus.Delivery) {
	for _, d := range batch {
		if s, ok := payloadOf(d).(*event.GangStatus); ok && s.UID != "" {
			key := readKey{t.epoch, attemptKey{s.Workload, s.Attempt}}
			if _, known := c.read[key]; !known {
				c.read[key] = t.step.State.Version() + 1
			}
		}
	}
}

// hadRead reports whether a term knew what was created before it decided this.
func (c *checker) hadRead(changes state.Changes, attempt attemptKey) bool {
	version, known := c.read[readKey{changes.Epoch, attempt}]
	return known && version < changes.Version
}

// checkRunning: a gang runs when its own pods have been ready, whatever has its labels:
// as many as the smallest size that it was given, because one that runs may grow.
func (c *checker) checkRunning(r workload.Record) {
	key := attemptKey{r.ID, r.Attempt}
	if r.Phase != workload.Running || c.ran[key] {
		return
	}
	wanted := int64(r.Pods())
	for size := range c.sizes[key] {
		wanted = min(wanted, size)
	}
	// What is not known counts for the pod: until a term has read what was created,
	// whatever is in the namespace, and always a controller that no watcher has seen.
	wanted -= int64(len(c.w.cluster.podsOf(func(p *pod) bool {
		return p.claims == r.ID && p.namespace == r.Namespace && (c.blind[r.ID] || p.owner == unseenOwner)
	})))
	if ready := int64(len(c.ready[key])); ready < wanted {
		c.w.breach("G1", "%s is running, and %d of its %d pods have ever been ready", c.w.submits.nameOf(r.ID), ready, wanted)
	}
	c.ran[key] = true
}
