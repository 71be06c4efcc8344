package usage_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/queue-manager/internal/usage"
)

const gpu = resource.Name("nvidia.com/gpu")

var day = time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC)

func at(minutes float64) time.Time { return day.Add(time.Duration(minutes * float64(time.Minute))) }

// step is a step of workload w that holds this many GPUs from then on.
func step(minutes float64, phase workload.Phase, attempt int, gpus int64, change ...func(*workload.UsageStep)) usage.Step {
	u := &workload.UsageStep{Queue: "q", Namespace: "ns", Submitter: "http/ann"}
	if gpus > 0 {
		u.Held = []workload.HeldResources{{Flavor: "a100", Resources: resource.List{gpu: gpus}}}
	}
	for _, c := range change {
		c(u)
	}
	return usage.Step{Workload: "w", At: at(minutes), Phase: phase, Attempt: attempt, Cluster: "c", Usage: u}
}

func since(minutes float64) func(*workload.UsageStep) {
	return func(u *workload.UsageStep) { u.Since = at(minutes) }
}

func saved(minutes float64) func(*workload.UsageStep) {
	return func(u *workload.UsageStep) { u.Checkpoint = at(minutes) }
}

func idle(minutes float64) func(*workload.UsageStep) {
	return func(u *workload.UsageStep) { u.IdleSince = at(minutes) }
}

// TestWhatIsSummed has GPU minutes of lives, each with its sums by hand.
func TestWhatIsSummed(t *testing.T) {
	t.Parallel()
	const q, a, d, r, e = workload.Queued, workload.Admitted, workload.Dispatched, workload.Running, workload.Evicting
	for name, c := range map[string]struct {
		from, to float64 // the report
		before   []usage.Step
		steps    []usage.Step
		want     query.UsedResource // minutes
		waits    []float64          // minutes
	}{
		"a life within the report": {
			0, 100, nil,
			[]usage.Step{step(10, a, 1, 4, since(3)), step(11, d, 1, 4), step(13, r, 1, 4), step(23, workload.Succeeded, 1, 4), step(24, workload.Succeeded, 1, 0)},
			query.UsedResource{Reserved: 56, Starting: 12, Running: 40, Stopping: 4}, []float64{7},
		},
		"it began before": {
			20, 100, []usage.Step{step(10, r, 1, 4)}, []usage.Step{step(25, workload.Cancelling, 1, 4), step(26, workload.Cancelled, 1, 0)},
			query.UsedResource{Reserved: 24, Running: 20, Stopping: 4}, nil,
		},
		"it ends after": {
			0, 20, nil, []usage.Step{step(10, a, 1, 2, since(10)), step(15, r, 1, 2), step(40, workload.Succeeded, 1, 2), step(41, workload.Succeeded, 1, 0)},
			query.UsedResource{Reserved: 20, Starting: 10, Running: 10}, []float64{0},
		},
		"all of the report lies in it": {
			30, 40, []usage.Step{step(10, r, 1, 2)}, []usage.Step{step(60, workload.Succeeded, 1, 2)},
			query.UsedResource{Reserved: 20, Running: 20}, nil,
		},
		"it still runs": {
			0, 50, nil, []usage.Step{step(10, a, 1, 1, since(0)), step(12, r, 1, 1)},
			query.UsedResource{Reserved: 40, Starting: 2, Running: 38}, []float64{10},
		},
		"the history before is lost": {
			20, 100, nil, []usage.Step{step(30, workload.Cancelling, 1, 4), step(31, workload.Cancelled, 1, 0)},
			query.UsedResource{Reserved: 4, Stopping: 4}, nil,
		},
		"evicted without a checkpoint": {
			0, 100, nil,
			[]usage.Step{step(0, a, 1, 1, since(0)), step(1, r, 1, 1), step(11, e, 1, 1), step(12, q, 2, 0), step(20, a, 2, 1), step(21, r, 2, 1), step(31, workload.Succeeded, 2, 0)},
			query.UsedResource{Reserved: 23, Starting: 2, Running: 20, Stopping: 1, Lost: 10}, []float64{0, 8},
		},
		"evicted after a checkpoint": {
			0, 100, nil, []usage.Step{step(0, a, 1, 1, since(0)), step(1, r, 1, 1), step(11, e, 1, 1, saved(8)), step(12, q, 2, 0, saved(8))},
			query.UsedResource{Reserved: 12, Starting: 1, Running: 10, Stopping: 1, Lost: 3}, []float64{0},
		},
		"a checkpoint in the time of grace": {
			0, 100, nil, []usage.Step{step(0, a, 1, 1, since(0)), step(1, r, 1, 1), step(11, e, 1, 1, saved(8)), step(13, q, 2, 0, saved(12))},
			query.UsedResource{Reserved: 13, Starting: 1, Running: 10, Stopping: 2}, []float64{0},
		},
		"evicted before it ran": {
			0, 100, nil, []usage.Step{step(0, a, 1, 1, since(0)), step(5, e, 1, 1), step(6, q, 2, 0)},
			query.UsedResource{Reserved: 6, Starting: 5, Stopping: 1}, []float64{0},
		},
		"only the part in the report is lost": {
			5, 9, []usage.Step{step(1, r, 1, 2)}, []usage.Step{step(11, e, 1, 2), step(12, q, 2, 0)},
			query.UsedResource{Reserved: 8, Running: 8, Lost: 8}, nil,
		},
		"idle before its end": {
			0, 100, nil, []usage.Step{step(0, a, 1, 2, since(0)), step(1, r, 1, 2), step(21, workload.Cancelling, 1, 2, idle(16)), step(22, workload.Cancelled, 1, 0)},
			query.UsedResource{Reserved: 44, Starting: 2, Running: 40, Stopping: 2, Idle: 10}, []float64{0},
		},
		"what is idle is not lost": {
			0, 100, nil, []usage.Step{step(0, a, 1, 1, since(0)), step(1, r, 1, 1), step(21, e, 1, 1, idle(16)), step(22, q, 2, 0)},
			query.UsedResource{Reserved: 22, Starting: 1, Running: 20, Stopping: 1, Lost: 15, Idle: 5}, []float64{0},
		},
		"it grows and shrinks": {
			0, 100, nil, []usage.Step{step(0, a, 1, 1, since(0)), step(1, r, 1, 1), step(11, r, 1, 3), step(21, r, 1, 2), step(31, e, 1, 2, saved(26)), step(31, q, 2, 0)},
			query.UsedResource{Reserved: 61, Starting: 1, Running: 60, Lost: 10}, []float64{0},
		},
		"a reason changes while it starts": {
			0, 100, nil, []usage.Step{step(2, a, 1, 1, since(0)), step(3, a, 1, 1), step(4, r, 1, 1), step(5, workload.Failed, 1, 0)},
			query.UsedResource{Reserved: 3, Starting: 2, Running: 1}, []float64{2},
		},
		"a reason changes while it starts before the report": {
			3, 100, []usage.Step{step(1, a, 1, 1, since(0))}, []usage.Step{step(4, a, 1, 1), step(5, r, 1, 1), step(6, workload.Failed, 1, 0)},
			query.UsedResource{Reserved: 3, Starting: 2, Running: 1}, nil,
		},
		"it waited for its second attempt before the report": {
			20, 100, []usage.Step{step(12, q, 2, 0)}, []usage.Step{step(30, a, 2, 1), step(31, workload.Failed, 2, 0)},
			query.UsedResource{Reserved: 1, Starting: 1}, []float64{18},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			accounts := usage.New(query.UsageRequest{Since: at(c.from), Until: at(c.to)})
			for _, s := range c.steps {
				if err := accounts.Add(s); err != nil {
					t.Fatal(err)
				}
			}
			if len(c.before) > 0 && len(accounts.Unknown()) != 1 {
				t.Fatalf("unknown: %v, want the workload", accounts.Unknown())
			}
			for _, s := range c.before {
				if err := accounts.Before(s); err != nil {
					t.Fatal(err)
				}
			}
			if err := accounts.Close(at(c.to)); err != nil {
				t.Fatal(err)
			}
			rows := accounts.Rows()
			if len(rows) != 1 || len(rows[0].Resources) != 1 {
				t.Fatalf("got %+v, want one row of one resource", rows)
			}
			got := rows[0].Resources[0]
			for _, v := range []*float64{&got.Reserved, &got.Starting, &got.Running, &got.Stopping, &got.Lost, &got.Idle} {
				*v /= 60
			}
			c.want.Resource = gpu
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("minutes: %s", diff)
			}
			if rows[0].Admissions != len(c.waits) {
				t.Errorf("%d admissions, want %d", rows[0].Admissions, len(c.waits))
			}
			if n := len(c.waits); n > 0 && rows[0].Waits.Max != slices.Max(c.waits)*60 {
				t.Errorf("longest wait %v s, want %v min", rows[0].Waits.Max, slices.Max(c.waits))
			}
		})
	}
}

func TestRowsAndCost(t *testing.T) {
	t.Parallel()
	mixed := func(u *workload.UsageStep) {
		u.Held = []workload.HeldResources{{Flavor: "", Resources: resource.List{resource.CPU: 2000}}, {Flavor: "a100", Resources: resource.List{gpu: 1}}}
	}
	other := func(u *workload.UsageStep) { u.Queue, u.Namespace, u.Submitter = "r", "theirs", "nats/ann" }
	// 90 minutes across midnight, and 30 minutes of another queue.
	steps := []usage.Step{step(-30, workload.Admitted, 1, 1, mixed, since(-40)), step(60, workload.Failed, 1, 0)}
	others := []usage.Step{step(0, workload.Admitted, 1, 1, other, since(-20)), step(30, workload.Failed, 1, 0, other)}
	for i := range others {
		others[i].Workload = "x"
	}
	for name, c := range map[string]struct {
		change func(*query.UsageRequest)
		want   map[string]float64 // GPU hours
		cost   float64
	}{
		"all":          {func(*query.UsageRequest) {}, map[string]float64{"[]": 2}, 0},
		"by queue":     {func(r *query.UsageRequest) { r.By = []string{query.ByQueue} }, map[string]float64{"[q]": 1.5, "[r]": 0.5}, 0},
		"by submitter": {func(r *query.UsageRequest) { r.By = []string{query.BySubmitter} }, map[string]float64{"[http/ann]": 1.5, "[nats/ann]": 0.5}, 0},
		"by user":      {func(r *query.UsageRequest) { r.By = []string{query.ByUser} }, map[string]float64{"[ann]": 2}, 0},
		"by flavor":    {func(r *query.UsageRequest) { r.By = []string{query.ByFlavor} }, map[string]float64{"[]": 0, "[a100]": 2}, 0},
		"by day":       {func(r *query.UsageRequest) { r.By = []string{query.ByDay} }, map[string]float64{"[2026-03-03]": 0.5, "[2026-03-04]": 1.5}, 0},
		"by hour":      {func(r *query.UsageRequest) { r.By = []string{query.ByHour} }, map[string]float64{"[2026-03-03T23Z]": 0.5, "[2026-03-04T00Z]": 1.5}, 0},
		"by month":     {func(r *query.UsageRequest) { r.By = []string{query.ByMonth} }, map[string]float64{"[2026-03]": 2}, 0},
		"by two":       {func(r *query.UsageRequest) { r.By = []string{query.ByCluster, query.ByNamespace} }, map[string]float64{"[c ns]": 1.5, "[c theirs]": 0.5}, 0},
		"of a queue":   {func(r *query.UsageRequest) { r.Queue = "r" }, map[string]float64{"[]": 0.5}, 0},
		"of its places": {func(r *query.UsageRequest) {
			r.Within = []query.Place{{Queue: "q"}, {Queue: "r", Namespaces: []string{"ns"}}}
		}, map[string]float64{"[]": 1.5}, 0},
		"of nothing": {func(r *query.UsageRequest) { r.Namespace = "nobody" }, map[string]float64{}, 0},
		"cost": {func(r *query.UsageRequest) {
			r.Prices = []query.Price{{Resource: gpu, PerHour: 10}, {Flavor: "a100", Resource: gpu, PerHour: 3}, {Resource: resource.CPU, PerHour: 0.5}}
		}, map[string]float64{"[]": 2}, 2*3 + 1.5*2*0.5},
		"cost of one resource": {func(r *query.UsageRequest) {
			r.Resources, r.Prices = []resource.Name{gpu}, []query.Price{{Resource: gpu, PerHour: 10}, {Resource: resource.CPU, PerHour: 0.5}}
		}, map[string]float64{"[]": 2}, 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			request := query.UsageRequest{Since: at(-600), Until: at(600)}
			c.change(&request)
			accounts := usage.New(request)
			for _, s := range slices.Concat(steps, others) {
				if err := accounts.Add(s); err != nil {
					t.Fatal(err)
				}
			}
			if err := accounts.Close(at(600)); err != nil {
				t.Fatal(err)
			}
			got, cost := map[string]float64{}, 0.0
			for _, r := range accounts.Rows() {
				key := fmt.Sprint(r.Key)
				got[key] = 0
				for _, u := range r.Resources {
					if u.Resource == gpu {
						got[key] = u.Reserved / 3600
					}
				}
				cost += r.Cost
			}
			if diff := cmp.Diff(c.want, got); diff != "" || math.Abs(cost-c.cost) > 1e-9 {
				t.Errorf("GPU hours: %s; cost %v, want %v", diff, cost, c.cost)
			}
		})
	}
}

// TestSumsAreExact: reports of all parts of a time sum up to the report of all of it, with
// amounts of bytes that no 64 bits hold.
func TestSumsAreExact(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	var steps []usage.Step
	total := 0.0
	for i := range 300 {
		begin, length := random.Float64()*1000, 1+random.Float64()*500
		held := func(u *workload.UsageStep) {
			u.Held = []workload.HeldResources{{Resources: resource.List{resource.Memory: 1 << 50}}}
		}
		a, b := step(begin, workload.Admitted, 1, 1, held, since(begin)), step(begin+length, workload.Failed, 1, 0)
		a.At, b.At = a.At.Truncate(time.Microsecond), b.At.Truncate(time.Microsecond)
		a.Workload = workload.ID(fmt.Sprint(i))
		b.Workload = a.Workload
		steps = append(steps, a, b)
		total += b.At.Sub(a.At).Seconds() * (1 << 50)
	}
	slices.SortFunc(steps, func(x, y usage.Step) int { return x.At.Compare(y.At) })
	of := func(from, to time.Time) float64 {
		accounts := usage.New(query.UsageRequest{Since: from, Until: to})
		last := map[workload.ID]usage.Step{}
		for _, s := range steps {
			if s.At.Before(from) {
				last[s.Workload] = s
			} else if err := accounts.Add(s); err != nil {
				t.Fatal(err)
			}
		}
		for _, s := range last {
			if err := accounts.Before(s); err != nil {
				t.Fatal(err)
			}
		}
		if err := accounts.Close(at(2000)); err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for _, r := range accounts.Rows() {
			for _, u := range r.Resources {
				sum += u.Reserved
			}
		}
		return sum
	}
	whole := of(at(-1), at(2000))
	if !cmp.Equal(whole, total, cmpopts.EquateApprox(1e-12, 0)) {
		t.Errorf("the sum is %v, want %v", whole, total)
	}
	parts := 0.0
	for i := range 21 {
		parts += of(at(-1+float64(i)*97), at(-1+float64(i+1)*97))
	}
	if !cmp.Equal(parts, total, cmpopts.EquateApprox(1e-12, 0)) {
		t.Errorf("the sum of the parts is %v, want %v", parts, total)
	}
}

func TestRowsAreBounded(t *testing.T) {
	t.Parallel()
	accounts := usage.New(query.UsageRequest{Since: at(0), Until: at(100), By: []string{query.ByNamespace}})
	var err error
	for i := 0; i <= query.MaxUsageRows && err == nil; i++ {
		s := step(1, workload.Admitted, 1, 1, since(0), func(u *workload.UsageStep) { u.Namespace = fmt.Sprint(i) })
		s.Workload = workload.ID(fmt.Sprint(i))
		err = accounts.Add(s)
		if i < query.MaxUsageRows && err != nil {
			t.Fatalf("row %d: %v", i, err)
		}
	}
	if err == nil {
		t.Errorf("%d rows are taken", query.MaxUsageRows+1)
	}
}
