package usage

import (
	"slices"
	"strings"
	"time"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// Meter counts what workloads hold of accelerators while time passes, as reports of the same steps
// sum it afterwards. It counts in terms, and nothing between them. It is for one goroutine.
type Meter struct {
	accounts *Accounts // of the present term; nil between terms
	before   map[Series]Used
	shown    map[Series]Used
	most     int // series
}

// Series is what a meter counts apart.
type Series struct{ Queue, Flavor, Cluster string }

// Used are seconds of accelerators. Wasted is what the report calls so: starting, lost and idle.
type Used struct{ Reserved, Running, Wasted float64 }

func (u Used) plus(v Used) Used {
	return Used{u.Reserved + v.Reserved, u.Running + v.Running, u.Wasted + v.Wasted}
}

// NewMeter returns a meter with a bound on its series. What is beyond it counts in the last one.
func NewMeter(most int) *Meter {
	return &Meter{before: map[Series]Used{}, shown: map[Series]Used{}, most: most}
}

// Others is every label of the series of what is beyond the bound.
const Others = "(others)"

// Begin begins a term at which workloads hold what the last of their steps have. They need not be
// in the order of time, but those of one workload are.
func (m *Meter) Begin(at time.Time, held []Step) {
	m.End(at)
	m.accounts = New(query.UsageRequest{Since: at, Until: endless, By: []string{query.ByQueue, query.ByFlavor, query.ByCluster}})
	m.accounts.bound = m.bounded
	for _, s := range held {
		m.Add(s)
	}
}

// endless is after all steps.
var endless = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// bounded is the key of a series that is there, or may be added.
func (m *Meter) bounded(key []string) []string {
	of := Series{key[0], key[1], key[2]}
	if _, known := m.shown[of]; known {
		return key
	}
	if len(m.shown) >= m.most-1 { // the last one is that of others
		of = Series{Others, Others, Others}
	}
	if _, known := m.shown[of]; !known {
		m.shown[of] = Used{}
	}
	return []string{of.Queue, of.Flavor, of.Cluster}
}

// Add takes the next step with usage.
func (m *Meter) Add(s Step) {
	a := m.accounts
	if a == nil || s.Usage == nil {
		return
	}
	if l := a.lives[s.Workload]; l == nil {
		a.begin(s)
	} else {
		a.follow(l, s)
	}
	if len(s.Usage.Held) == 0 { // and nothing more can be lost
		delete(a.lives, s.Workload)
	}
}

// End ends a term.
func (m *Meter) End(at time.Time) {
	if m.accounts == nil {
		return
	}
	m.before = m.at(at)
	m.accounts = nil
}

// At returns what was counted until now. It never becomes less: a step that is added later may
// have freed places before now, and its series then waits until its sum is reached.
func (m *Meter) At(now time.Time) map[Series]Used {
	for of, used := range m.at(now) {
		shown := m.shown[of]
		m.shown[of] = Used{max(shown.Reserved, used.Reserved), max(shown.Running, used.Running), max(shown.Wasted, used.Wasted)}
	}
	return m.shown
}

// at sums the terms before, what has ended in this one, and what goes on.
func (m *Meter) at(now time.Time) map[Series]Used {
	sums := map[Series]Used{}
	for of, used := range m.before {
		sums[of] = used
	}
	a := m.accounts
	if a == nil {
		return sums
	}
	for _, r := range a.rows {
		of := Series{r.key[0], r.key[1], r.key[2]}
		for _, u := range r.answer().Resources {
			if isAccelerator(u.Resource) {
				sums[of] = sums[of].plus(Used{u.Reserved, u.Running, u.Wasted()})
			}
		}
	}
	for _, l := range a.lives {
		for _, h := range l.last.Usage.Held {
			key := m.bounded(a.key(l.last, h.Flavor, now))
			of := Series{key[0], key[1], key[2]}
			sums[of] = sums[of].plus(goesOn(l.last.Phase, h, now.Sub(latest(l.last.At, a.since))))
		}
	}
	return sums
}

// goesOn is what is held since the last step, and was not lost until now.
func goesOn(phase workload.Phase, h workload.HeldResources, span time.Duration) (used Used) {
	for name, amount := range h.Resources {
		if span <= 0 || !isAccelerator(name) {
			continue
		}
		seconds := float64(amount) * span.Seconds()
		used.Reserved += seconds
		switch phase {
		case workload.Admitted, workload.Dispatched:
			used.Wasted += seconds
		case workload.Running:
			used.Running += seconds
		}
	}
	return used
}

// isAccelerator is what the text of a report takes for one.
func isAccelerator(name resource.Name) bool { return strings.Contains(string(name), "/") }

// SeriesOf lists the series of counts in an order of their own.
func SeriesOf(counts map[Series]Used) []Series {
	all := make([]Series, 0, len(counts))
	for of := range counts {
		all = append(all, of)
	}
	slices.SortFunc(all, func(a, b Series) int {
		return slices.Compare([]string{a.Queue, a.Flavor, a.Cluster}, []string{b.Queue, b.Flavor, b.Cluster})
	})
	return all
}
