package placement

import (
	"cmp"
	"slices"
	"strings"

	"muster.dev/muster/pkg/spec/workload"
)

// mostTypical is the number of kinds of pods that count as typical.
const mostTypical = 16

// demand is the running and waiting pods with devices, for which packing keeps room.
// What is typical depends on the set of pods alone, not on the order of events, and
// what-ifs do not change it.
type demand struct {
	pods   map[string]*expected
	ranked []*expected // the most frequent first
}

// expected is a number of pods with equal requests.
type expected struct {
	key      string
	template *workload.Template
	pods     int64
	kind     kind
	columns  int // how many columns there were when kind was made
}

func newDemand() demand { return demand{pods: map[string]*expected{}} }

func (d *demand) clone() demand {
	c := demand{pods: make(map[string]*expected, len(d.pods)), ranked: make([]*expected, len(d.ranked))}
	for i, e := range d.ranked {
		same := *e
		c.ranked[i], c.pods[e.key] = &same, &same
	}
	return c
}

// Demand is the pods with devices of a gang, in the form that Expect takes. Many gangs
// may share one.
type Demand []asked

type asked struct {
	key      string
	template *workload.Template
	pods     int64
}

// DemandOf returns the demand of a gang of these pod sets, which must not change.
func DemandOf(sets []workload.PodSet) Demand {
	var d Demand
	for i := range sets {
		if t := &sets[i].Template; sets[i].Count != 0 && hasDevices(t) {
			d = append(d, asked{templateKey(t), t, int64(sets[i].Count)})
		}
	}
	return d
}

// Expect adds that number of waiting gangs, or removes them if it is negative, so that
// packing keeps room for such gangs. Started gangs count by their placements.
func (f *Fleet) Expect(d Demand, gangs int) {
	for _, a := range d {
		f.demand.add(a.key, a.template, a.pods*int64(gangs))
	}
}

func hasDevices(t *workload.Template) bool {
	for name, amount := range t.Requests {
		if amount > 0 && extended(name) {
			return true
		}
	}
	return false
}

func templateKey(t *workload.Template) string { return string(appendTemplateKey(nil, t)) }

func (d *demand) add(key string, t *workload.Template, pods int64) {
	if pods == 0 {
		return
	}
	e := d.pods[key]
	if e == nil {
		e = &expected{key: key, template: t}
		d.pods[key] = e
		d.ranked = append(d.ranked, e)
	}
	i := len(d.ranked) - 1
	if d.ranked[i] != e {
		i, _ = slices.BinarySearchFunc(d.ranked, e, compareExpected)
	}
	if e.pods += pods; e.pods == 0 {
		delete(d.pods, key)
		d.ranked = slices.Delete(d.ranked, i, i+1)
		return
	}
	d.rank(i)
}

// rank moves the entry at place i to where it belongs, which mostly is where it is.
func (d *demand) rank(i int) {
	e := d.ranked[i]
	if (i == 0 || compareExpected(d.ranked[i-1], e) < 0) && (i+1 == len(d.ranked) || compareExpected(e, d.ranked[i+1]) < 0) {
		return
	}
	d.ranked = slices.Delete(d.ranked, i, i+1)
	i, _ = slices.BinarySearchFunc(d.ranked, e, compareExpected)
	d.ranked = slices.Insert(d.ranked, i, e)
}

func compareExpected(a, b *expected) int {
	return cmp.Or(cmp.Compare(b.pods, a.pods), strings.Compare(a.key, b.key))
}

// typicalPods returns the most frequent kinds of pods with devices, and their number of
// pods in all.
func (f *Fleet) typicalPods() (all []*expected, weight int64) {
	typical := 0
	for _, e := range f.demand.ranked[:min(len(f.demand.ranked), mostTypical)] {
		if e.pods < 0 { // more was released than was added
			break
		}
		typical++
		if e.columns != len(f.columns.names) || !f.current(e.kind.filter) {
			e.kind = f.newKind(&workload.PodSet{Count: 1, Template: *e.template}, 0)
			e.columns = len(f.columns.names)
		}
		weight += e.pods
	}
	return f.demand.ranked[:typical], weight
}

// stranded returns how many free devices typical pods cannot use, weighted by the
// frequency of each kind: FGD's fragmentation of a node. Pods that ask for fewer
// devices than are free can use them all.
func (f *Fleet) stranded(typical []*expected, free vector, n *node) int64 {
	devices := f.columns.devices(free)
	if devices == 0 {
		return 0
	}
	sum := int64(0)
	for _, t := range typical {
		if !t.kind.filter.eligible(n) || t.kind.fits(free, 1) == 0 {
			sum = add(sum, multiply(t.pods, devices))
		}
	}
	return sum
}

// Cost ranks a place for a pod; the least is best. It is FGD's measure and, as a
// tie-break that also weighs when the measure hardly differs, a little for what
// is free on the node: a device that a typical pod cannot use any more costs
// 4000, an idle device 10 and an idle core 1. On the trace of FGD's authors
// (test/packing) this fills more than the measure alone.
//
// stranded is how many devices more the pod would strand, summed over typical
// pods of the given weight in all; idle is the devices free before, unit what
// one device counts there; cpu is the millicores free after.
func Cost(stranded, weight, idle, unit, cpu int64) int64 {
	return multiply(stranded, 4000)/max(1, multiply(weight, unit)) + idle*10/unit + cpu/1000
}

// appendTemplateKey writes what places a template's pods may have, the same for
// equal templates.
func appendTemplateKey(key []byte, t *workload.Template) []byte {
	key = append(appendFilterKey(key, t), '#')
	for _, name := range t.Requests.Names() {
		key = appendAmount(appendTexts(key, string(name)), t.Requests[name])
	}
	return key
}
