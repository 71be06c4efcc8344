package simulation_test

import (
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"muster.dev/muster/pkg/whatif/swf"
)

// drawJobs draws jobs for that many processors.
func drawJobs(t *rapid.T, processors int64) (jobs []swf.Job) {
	at := int64(0)
	for i := range rapid.IntRange(1, 40).Draw(t, "jobs") {
		at += rapid.Int64Range(0, 40).Draw(t, "later")
		jobs = append(jobs, swf.Job{
			Line: i + 1, Number: int64(i), Submit: at, Run: rapid.Int64Range(1, 120).Draw(t, "run"),
			AskProcessors: rapid.Int64Range(1, processors).Draw(t, "asked"), AskTime: rapid.Int64Range(1, 120).Draw(t, "time"),
		})
	}
	return jobs
}

// TestThePlannerWithOneReservationIsEASY: the model that Slurm's figures are from and the one of
// EASY, which were written apart, start the same jobs at the same times.
func TestThePlannerWithOneReservationIsEASY(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		processors := rapid.Int64Range(1, 8).Draw(t, "processors")
		jobs := drawJobs(t, processors)
		got := planner{depth: len(jobs), reserved: 1}.play(jobs, processors)
		if want := counted(jobs, processors, false); !slices.Equal(want, got) {
			t.Errorf("the planner starts the jobs at %v, EASY at %v", got, want)
		}
	})
}

// TestSlurmInHand: what the settings of Slurm's backfill change, in a machine of ten processors of
// which eight are used until 100,000: the second job waits for all ten, and the third asks for two.
func TestSlurmInHand(t *testing.T) {
	t.Parallel()
	jobs := func(head, passes swf.Job) []swf.Job {
		first := swf.Job{Submit: 0, Run: 100_000, AskTime: 100_000, AskProcessors: 8}
		head.AskProcessors, passes.AskProcessors = 10, 2
		return []swf.Job{first, head, passes}
	}
	asks := func(submit, run, time int64) swf.Job { return swf.Job{Submit: submit, Run: run, AskTime: time} }
	day := int64(24 * 3600)
	for name, c := range map[string]struct {
		change func(*planner)
		jobs   []swf.Job
		want   []int64
	}{
		"a job that ends before the head starts passes it in the next round": {
			nil, jobs(asks(20_000, 10, 10), asks(20_001, 500, 500)), []int64{0, 100_000, 20_010},
		},
		"a job that would delay the head waits": {
			nil, jobs(asks(20_000, 10, 10), asks(20_001, 500, 90_000)), []int64{0, 100_000, 100_010},
		},
		"a head that cannot start within the window is delayed": {
			nil, jobs(asks(2, 10, 10), asks(3, 2*day, 2*day)), []int64{0, 2*day + 30, 30},
		},
		"not with a longer window": {
			func(p *planner) { p.window = 2 * day }, jobs(asks(2, 10, 10), asks(3, 2*day, 2*day)), []int64{0, 100_000, 100_010},
		},
		"a job beyond the depth does not pass": {
			func(p *planner) { p.depth = 1 }, jobs(asks(20_000, 10, 10), asks(20_001, 500, 500)), []int64{0, 100_000, 100_010},
		},
		"a job delays the head by less than a minute": {
			nil, jobs(asks(20_000, 10, 10), asks(20_001, 80_040, 80_040)), []int64{0, 100_050, 20_010},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := bySlurm()
			if c.change != nil {
				c.change(&p)
			}
			if got := p.play(c.jobs, 10); !slices.Equal(c.want, got) {
				t.Errorf("the jobs start at %v, want %v", got, c.want)
			}
		})
	}
}

// rowOf finds the figures of a row of docs/backfill.md on KTH-SP2.
func rowOf(page, name string) []string {
	return regexp.MustCompile(`\n\| ` + regexp.QuoteMeta(name) + `[^|]*\| ([0-9.]+) \(([0-9]+) h\)`).FindStringSubmatch(page)
}

// TestThePageHasSlurmsFigures: the rows of docs/backfill.md that no queue of Muster's can be
// configured to are what the planner has on the log of the KTH.
func TestThePageHasSlurmsFigures(t *testing.T) {
	t.Parallel()
	const nodes = 100
	path := os.Getenv(kthPath)
	if path == "" {
		t.Skip("the log is not here: set " + kthPath)
	}
	page, err := os.ReadFile("../../../docs/backfill.md")
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	log, err := swf.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	jobs := slices.DeleteFunc(log.Jobs, func(j swf.Job) bool {
		return j.AskProcessors > nodes || j.AskProcessors <= 0 || j.Run <= 0 || j.AskTime <= 0
	})
	for name, p := range map[string]planner{
		"Slurm's backfill":         bySlurm(),
		"Submission, depth 10":     {depth: len(jobs), reserved: 10},
		"Submission, all reserved": {depth: len(jobs), reserved: len(jobs)},
		"EASY":                     {depth: len(jobs), reserved: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			slowdown, longest := 0.0, int64(0)
			for i, at := range p.play(jobs, nodes) {
				run := min(jobs[i].Run, jobs[i].AskTime)
				wait := at - jobs[i].Submit
				slowdown += max(1, float64(wait+run)/float64(max(run, 10)))
				longest = max(longest, wait)
			}
			slowdown /= float64(len(jobs))
			t.Logf("%s: average bounded slowdown %.4f, longest wait %d s (%.1f h)", name, slowdown, longest, float64(longest)/3600)
			row := rowOf(string(page), name)
			if row == nil {
				t.Fatal("the page has no such row")
			}
			stated, err := strconv.ParseFloat(row[1], 64)
			if err != nil || math.Abs(stated-slowdown) > 0.00501 {
				t.Errorf("the page has %q (%v), and it is %.4f", row[1], err, slowdown)
			}
			if hours := strconv.FormatInt((longest+1800)/3600, 10); hours != row[2] {
				t.Errorf("the page has %s h as the longest wait, and it is %s h", row[2], hours)
			}
		})
	}
}
