package usage

import (
	"maps"
	"math/bits"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// stage is how a span was used.
type stage int

const (
	starting stage = iota
	running
	stopping
	lost
	idle
	stages
)

// row sums what was used under one key.
type row struct {
	key   []string
	used  map[resource.Name]*[stages]sum
	waits []time.Duration
	cost  float64
}

func newRow(key []string) *row { return &row{key: key, used: map[resource.Name]*[stages]sum{}} }

// sum is an exact sum of amounts times microseconds, of 128 bits.
type sum struct{ high, low uint64 }

func (s *sum) add(amount int64, d time.Duration) {
	high, low := bits.Mul64(uint64(max(0, amount)), uint64(d.Microseconds()))
	var carry uint64
	s.low, carry = bits.Add64(s.low, low, 0)
	s.high, _ = bits.Add64(s.high, high, carry)
}

// seconds is the sum in units times seconds.
func (s *sum) seconds(name resource.Name) float64 {
	micro := float64(s.high)*(1<<64) + float64(s.low)
	return micro / 1e6 / unit(name)
}

// unit is how much of a resource's amount is one of it: amounts of CPU are in thousandths.
func unit(name resource.Name) float64 {
	if name == resource.CPU {
		return 1000
	}
	return 1
}

// add adds a time in which resources of a flavor were used.
func (r *row) add(request query.UsageRequest, what stage, held workload.HeldResources, d time.Duration) {
	for name, amount := range held.Resources {
		if len(request.Resources) > 0 && !slices.Contains(request.Resources, name) {
			continue
		}
		if r.used[name] == nil {
			r.used[name] = &[stages]sum{}
		}
		r.used[name][what].add(amount, d)
		if what <= stopping {
			r.cost += price(request.Prices, held.Flavor, name) * float64(amount) / unit(name) * d.Hours()
		}
	}
}

// price is that of a flavor, or else of the resource in any.
func price(prices []query.Price, flavor string, name resource.Name) float64 {
	found := 0.0
	for _, p := range prices {
		switch {
		case p.Resource != name:
		case p.Flavor == flavor && flavor != "":
			return p.PerHour
		case p.Flavor == "":
			found = p.PerHour
		}
	}
	return found
}

// key is that of a row.
func (a *Accounts) key(s Step, flavor string, at time.Time) []string {
	key := make([]string, len(a.request.By))
	for i, by := range a.request.By {
		switch by {
		case query.ByQueue:
			key[i] = s.Usage.Queue
		case query.ByNamespace:
			key[i] = s.Usage.Namespace
		case query.BySubmitter:
			key[i] = s.Usage.Submitter
		case query.ByUser:
			key[i] = s.Usage.Submitter[strings.LastIndexByte(s.Usage.Submitter, '/')+1:]
		case query.ByFlavor:
			key[i] = flavor
		case query.ByCluster:
			key[i] = s.Cluster
		case query.ByHour:
			key[i] = at.UTC().Format("2006-01-02T15Z")
		case query.ByDay:
			key[i] = at.UTC().Format(time.DateOnly)
		case query.ByMonth:
			key[i] = at.UTC().Format("2006-01")
		}
	}
	return key
}

// nextBorder is the end of the hour, day or month of a time, whichever the report is by and
// is first; zero when it is by none.
func (a *Accounts) nextBorder(at time.Time) (next time.Time) {
	at = at.UTC()
	year, month, day := at.Date()
	switch {
	case slices.Contains(a.request.By, query.ByHour):
		return at.Truncate(time.Hour).Add(time.Hour)
	case slices.Contains(a.request.By, query.ByDay):
		return time.Date(year, month, day+1, 0, 0, 0, 0, time.UTC)
	case slices.Contains(a.request.By, query.ByMonth):
		return time.Date(year, month+1, 1, 0, 0, 0, 0, time.UTC)
	}
	return next
}

// Rows returns the rows in the order of their keys.
func (a *Accounts) Rows() []query.UsageRow {
	rows := make([]query.UsageRow, 0, len(a.rows))
	for _, r := range a.rows {
		rows = append(rows, r.answer())
	}
	slices.SortFunc(rows, func(x, y query.UsageRow) int { return slices.Compare(x.Key, y.Key) })
	return rows
}

func (r *row) answer() query.UsageRow {
	answer := query.UsageRow{Key: r.key, Admissions: len(r.waits), Waits: percentiles(r.waits), Resources: []query.UsedResource{}, Cost: r.cost}
	for _, name := range slices.Sorted(maps.Keys(r.used)) {
		of := func(s stage) float64 { return r.used[name][s].seconds(name) }
		reserved := r.used[name][starting]
		reserved.plus(r.used[name][running])
		reserved.plus(r.used[name][stopping])
		answer.Resources = append(answer.Resources, query.UsedResource{
			Resource: name, Reserved: reserved.seconds(name), Starting: of(starting), Running: of(running), Stopping: of(stopping), Lost: of(lost), Idle: of(idle),
		})
	}
	return answer
}

func (s *sum) plus(other sum) {
	var carry uint64
	s.low, carry = bits.Add64(s.low, other.low, 0)
	s.high, _ = bits.Add64(s.high, other.high, carry)
}

// percentiles are by nearest rank.
func percentiles(waits []time.Duration) (p query.UsageWaits) {
	if len(waits) == 0 {
		return p
	}
	slices.Sort(waits)
	at := func(percent int) float64 { return waits[(len(waits)*percent+99)/100-1].Seconds() }
	return query.UsageWaits{P50: at(50), P90: at(90), P99: at(99), Max: at(100)}
}
