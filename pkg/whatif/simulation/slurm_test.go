package simulation_test

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"muster.dev/muster/pkg/whatif/simulation"
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

// logs are those of the columns of docs/backfill.md that are not part of this repository: the
// name of the environment variable that names the file, the machine, and the windows that are
// played each by itself, with known run times.
var logs = []struct {
	column, path string
	processors   int64
	windows      []int
}{
	{"KTH-SP2", kthPath, 100, nil},
	{"Lublin-1", "MUSTER_LUBLIN_1", 256, []int{1981, 2756, 4299, 8850, 3316, 2714, 5228, 7762, 4022, 7085}},
	{"Lublin-2", "MUSTER_LUBLIN_2", 256, []int{1981, 2756, 4299, 8850, 3316, 2714, 5228, 7762, 4022, 7085}},
}

// cellOf finds the figures of a row of docs/backfill.md in a column: the slowdown and the hours.
func cellOf(page, name, column string) []string {
	header := regexp.MustCompile(`\n\| (\|.*KTH-SP2.*)\n`).FindStringSubmatch(page)
	row := regexp.MustCompile(`\n\| ` + regexp.QuoteMeta(name) + `[^|]*(\|.*)\n`).FindStringSubmatch(page)
	if header == nil || row == nil {
		return nil
	}
	at := slices.Index(strings.Split(header[1], "|"), " "+column+" ")
	cells := strings.Split(row[1], "|")
	if at < 0 || at >= len(cells) {
		return nil
	}
	return regexp.MustCompile(`^ ([0-9.]+) \(([0-9]+) h\) $`).FindStringSubmatch(cells[at])
}

// TestThePageHasSlurmsFigures: the rows of docs/backfill.md of the counting model, which knows no
// nodes, are what it has on the logs.
func TestThePageHasSlurmsFigures(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/backfill.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range logs {
		t.Run(l.column, func(t *testing.T) {
			t.Parallel()
			jobs := loggedJobs(t, l.path, l.processors, l.windows != nil)
			parts := [][]swf.Job{jobs}
			if l.windows != nil {
				parts = nil
			}
			for _, at := range l.windows {
				parts = append(parts, jobs[at:at+simulation.WindowJobs])
			}
			for name, p := range map[string]planner{
				"Slurm's backfill":         bySlurm(),
				"Submission, depth 10":     {depth: len(jobs), reserved: 10},
				"Submission, all reserved": {depth: len(jobs), reserved: len(jobs)},
				"EASY":                     {depth: len(jobs), reserved: 1},
			} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					slowdown, longest := p.figures(parts, l.processors)
					t.Logf("%s on %s: average bounded slowdown %.4f, longest wait %d s (%.1f h)", name, l.column, slowdown, longest, float64(longest)/3600)
					compareCell(t, cellOf(string(page), name, l.column), slowdown, longest)
				})
			}
		})
	}
}

// loggedJobs reads the jobs of a log that can run on that many processors. With known run times
// they promise what they run.
func loggedJobs(t *testing.T, variable string, processors int64, known bool) []swf.Job {
	t.Helper()
	path := os.Getenv(variable)
	if path == "" {
		t.Skip("the log is not here: set " + variable)
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
	for i := range log.Jobs {
		j := &log.Jobs[i]
		if j.AskProcessors <= 0 {
			j.AskProcessors = j.Processors
		}
		if known {
			j.AskTime = j.Run
		}
	}
	return slices.DeleteFunc(log.Jobs, func(j swf.Job) bool {
		return j.AskProcessors > processors || j.AskProcessors <= 0 || j.Run <= 0 || j.AskTime <= 0
	})
}

// figures are the average bounded slowdown of the jobs, each part played by itself, and the
// longest wait.
func (p planner) figures(parts [][]swf.Job, processors int64) (slowdown float64, longest int64) {
	count := 0
	for _, jobs := range parts {
		for i, at := range p.play(jobs, processors) {
			run := min(jobs[i].Run, jobs[i].AskTime)
			wait := at - jobs[i].Submit
			slowdown += max(1, float64(wait+run)/float64(max(run, 10)))
			longest = max(longest, wait)
		}
		count += len(jobs)
	}
	return slowdown / float64(count), longest
}

// compareCell compares the figures with what the page has, to its last digit.
func compareCell(t *testing.T, cell []string, slowdown float64, longest int64) {
	t.Helper()
	if cell == nil {
		t.Fatal("the page has no such figures")
	}
	_, decimals, _ := strings.Cut(cell[1], ".")
	if got := strconv.FormatFloat(slowdown, 'f', len(decimals), 64); got != cell[1] {
		t.Errorf("the page has %s, and it is %.4f", cell[1], slowdown)
	}
	if hours := strconv.FormatInt((longest+1800)/3600, 10); hours != cell[2] {
		t.Errorf("the page has %s h as the longest wait, and it is %s h", cell[2], hours)
	}
}
