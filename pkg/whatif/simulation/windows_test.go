package simulation_test

import (
	"strings"
	"testing"

	"muster.dev/muster/pkg/whatif/lublin"
	"muster.dev/muster/pkg/whatif/simulation"
)

func generated(t *testing.T, jobs int) []simulation.Job {
	t.Helper()
	log, err := lublin.Generate(lublin.Config{Jobs: jobs, Processors: 16, Seed: 1, Load: 1})
	if err != nil {
		t.Fatal(err)
	}
	all, _, err := simulation.OfLog(log, simulation.Shape{})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Windows are simulated by themselves: their sum is that of their simulations one by one.
func TestWindowsAreSummedUp(t *testing.T) {
	t.Parallel()
	jobs := generated(t, 1500)
	windows, err := simulation.Windows(jobs, []int{0, 400})
	if err != nil {
		t.Fatal(err)
	}
	policy, err := simulation.ParsePolicy("easy")
	if err != nil {
		t.Fatal(err)
	}
	site := policy.On(simulation.Alike(16))
	both, err := simulation.PlayWindows(windows, site, simulation.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var slowdown, longest, makespan float64
	for _, window := range windows {
		one, err := simulation.Play(window, site, simulation.Options{})
		if err != nil {
			t.Fatal(err)
		}
		slowdown += one.AverageBoundedSlowdown / 2
		longest, makespan = max(longest, one.MaxWait), makespan+one.Makespan
	}
	if d := both.AverageBoundedSlowdown - slowdown; d > 1e-6 || d < -1e-6 || both.MaxWait != longest || both.Makespan != makespan || both.Jobs != 2*simulation.WindowJobs {
		t.Errorf("together they have %+v; one by one a slowdown of %g, a wait of %g and %g s", both, slowdown, longest, makespan)
	}
}

func TestWhereWindowsBegin(t *testing.T) {
	t.Parallel()
	jobs := generated(t, 1500)
	for name, c := range map[string]struct {
		at   []int
		want []int // the numbers of the first jobs
		err  string
	}{
		"all":          {nil, []int{0}, ""},
		"one":          {[]int{1}, []int{0}, ""},
		"spread":       {[]int{3}, []int{0, 238, 476}, ""},
		"at":           {[]int{476, 5}, []int{476, 5}, ""},
		"too late":     {[]int{0, 477}, nil, "begins with job 477: want 0 to 476 for 1500 jobs"},
		"none":         {[]int{0}, nil, "0 windows: want 1 to 477"},
		"negative":     {[]int{-1, 2}, nil, "job -1: want 0 to 476"},
		"too many":     {[]int{478}, nil, "478 windows: want 1 to 477"},
		"a short list": {[]int{1, 2, 900}, nil, "job 900"},
	} {
		t.Run(name, func(t *testing.T) {
			windows, err := simulation.Windows(jobs, c.at)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("the error is %v, want %q", err, c.err)
				}
				return
			}
			if err != nil || len(windows) != len(c.want) {
				t.Fatalf("%d windows, %v", len(windows), err)
			}
			for i, at := range c.want {
				if windows[i][0].ID != jobs[at].ID {
					t.Errorf("window %d begins with %s, want job %d", i, windows[i][0].Label, at)
				}
			}
		})
	}
}
