package simulation

import "fmt"

// WindowJobs is the number of jobs of a window, as in the published experiments with parts
// of a log (RLScheduler, SC'20).
const WindowJobs = 1024

// Windows returns parts of the jobs, of WindowJobs each: as many as one number is, evenly
// spaced, or those that begin at several numbers, counted from zero. Without a number all
// jobs are one part.
func Windows(jobs []Job, at []int) ([][]Job, error) {
	last := len(jobs) - WindowJobs
	switch {
	case len(at) == 0:
		return [][]Job{jobs}, nil
	case last < 0:
		return nil, fmt.Errorf("there are %d jobs; a window has %d", len(jobs), WindowJobs)
	case len(at) == 1:
		count := at[0]
		if count < 1 || count > last+1 {
			return nil, fmt.Errorf("%d windows: want 1 to %d for %d jobs", count, last+1, len(jobs))
		}
		at = make([]int, count)
		for i := range at {
			at[i] = i * last / max(1, count-1)
		}
	}
	var windows [][]Job
	for _, start := range at {
		if start < 0 || start > last {
			return nil, fmt.Errorf("a window that begins with job %d: want 0 to %d for %d jobs", start, last, len(jobs))
		}
		windows = append(windows, jobs[start:start+WindowJobs])
	}
	return windows, nil
}

// PlayWindows simulates each part of a log on an empty site, and sums up the results.
func PlayWindows(windows [][]Job, site Site, o Options) (Result, error) {
	if len(windows) == 1 {
		return Play(windows[0], site, o)
	}
	var runs []*run
	for _, jobs := range windows {
		s := newRun(jobs, site, Options{Victims: o.Victims})
		if err := s.run(o.Progress); err != nil {
			return Result{}, err
		}
		runs = append(runs, s)
	}
	return measure(runs, site.Nodes)
}
