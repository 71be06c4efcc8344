package sim

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
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
					c.w.narrate("forged: %s", c.forgeOf(o, set, l.f))
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
	if p.namespace == o.namespace {
		c.forged[p.claims] = append(c.forged[p.claims], p)
	}
	c.pods[p.namespace+"/"+p.name] = p
	c.changed("pod " + p.namespace + "/" + p.name)
	c.w.after(f.For, func() { c.deletePod(p, false) })
	return fmt.Sprintf("%s of %s, %s, for %s", p.name, c.w.submits.nameOf(o.workload), how, f.For)
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
	// whatever is in the namespace, and always a controller that no watcher has seen. A term
	// may look at pods that have gone since.
	for _, p := range c.w.cluster.forged[r.ID] {
		if c.blind[r.ID] || p.owner == unseenOwner {
			wanted--
		}
	}
	if ready := int64(len(c.ready[key])); ready < wanted {
		c.w.breach("G1", "%s is running, and %d of its %d pods have ever been ready", c.w.submits.nameOf(r.ID), ready, wanted)
	}
	c.ran[key] = true
}
