package simulation_test

import (
	"cmp"
	"slices"

	"muster.dev/muster/pkg/whatif/swf"
)

// planner is backfill with a plan, on a number of processors: a model that knows no nodes, queues
// or gangs, written from the field's descriptions and from Slurm's guide (sched_config.html).
//
// A round plans the jobs in their order: each starts now if the plan has room for it until its
// requested end, and else has room reserved at its earliest start.
type planner struct {
	depth    int   // jobs that a round looks at
	reserved int   // of them, those that get reservations
	every    int64 // seconds between rounds; zero for a round at each event
	window   int64 // jobs that would start later than this from now get no reservation; zero for no bound
	grain    int64 // seconds to which ends are rounded up in the plan; zero for one

	jobs    []swf.Job
	free    int64
	starts  []int64
	waiting []int
	active  []planned
}

// planned is a job that runs.
type planned struct {
	index            int
	ends, promisedBy int64
}

// bySlurm is backfill as Slurm has it by default: a round every 30 s (bf_interval), of the first
// 500 jobs (bf_max_job_test), within a day (bf_window), to the minute (bf_resolution). At each
// event between the rounds jobs start in order, up to the first that cannot.
func bySlurm() planner {
	return planner{depth: 500, reserved: 500, every: 30, window: 24 * 3600, grain: 60}
}

// play returns when each of the jobs starts.
func (p planner) play(jobs []swf.Job, processors int64) []int64 {
	p.jobs, p.free, p.starts = jobs, processors, make([]int64, len(jobs))
	round := int64(-1) // the next one; negative while nothing has changed
	for next := 0; next < len(jobs) || len(p.active) > 0; {
		ending := p.nextEnd()
		submits := next < len(jobs) && (ending < 0 || jobs[next].Submit <= p.active[ending].ends)
		var now int64
		if submits {
			now = jobs[next].Submit
		} else {
			now = p.active[ending].ends
		}
		if round >= 0 && round < now {
			p.round(round)
			round = -1
			continue
		}
		fits := true
		if submits {
			fits = jobs[next].AskProcessors <= p.free
			p.waiting = append(p.waiting, next)
			next++
		} else {
			p.free += jobs[p.active[ending].index].AskProcessors
			p.active = slices.Delete(p.active, ending, ending+1)
		}
		if p.every == 0 {
			if fits {
				p.round(now)
			}
			continue
		}
		p.inOrder(now)
		if round = -1; len(p.waiting) > 0 {
			round = (now/p.every + 1) * p.every
		}
	}
	return p.starts
}

// nextEnd is which of the active jobs ends first; negative for none.
func (p *planner) nextEnd() int {
	first := -1
	for i, a := range p.active {
		if first < 0 || a.ends < p.active[first].ends {
			first = i
		}
	}
	return first
}

func (p *planner) start(i int, now int64) {
	job := p.jobs[i]
	p.free -= job.AskProcessors
	p.starts[i] = now
	p.active = append(p.active, planned{i, now + min(job.Run, job.AskTime), now + job.AskTime})
}

// inOrder starts jobs in order, up to the first that cannot.
func (p *planner) inOrder(now int64) {
	for len(p.waiting) > 0 && p.jobs[p.waiting[0]].AskProcessors <= p.free {
		p.start(p.waiting[0], now)
		p.waiting = p.waiting[1:]
	}
}

// round plans the waiting jobs, and starts those whose time has come.
func (p *planner) round(now int64) {
	plan := p.plan(now)
	reserved, started := 0, map[int]bool{}
	for _, i := range p.waiting[:min(p.depth, len(p.waiting))] {
		job := p.jobs[i]
		at := plan.earliest(job.AskProcessors, p.rounded(job.AskTime))
		switch {
		case at == now && job.AskProcessors <= p.free:
			p.start(i, now)
			started[i] = true
		case reserved == p.reserved, p.window > 0 && at > now+p.window:
			continue
		default:
			reserved++
		}
		plan.take(at, at+p.rounded(job.AskTime), job.AskProcessors)
	}
	p.waiting = slices.DeleteFunc(slices.Clone(p.waiting), func(i int) bool { return started[i] })
}

func (p *planner) rounded(seconds int64) int64 {
	grain := max(1, p.grain)
	return (seconds + grain - 1) / grain * grain
}

// plan is what is free from now on when the active jobs end as they promise.
func (p *planner) plan(now int64) profile {
	plan := profile{{now, p.free}}
	for _, a := range slices.SortedFunc(slices.Values(p.active), func(a, b planned) int { return cmp.Compare(a.promisedBy, b.promisedBy) }) {
		at, last := max(now, now+p.rounded(a.promisedBy-now)), &plan[len(plan)-1]
		if last.at == at {
			last.free += p.jobs[a.index].AskProcessors
			continue
		}
		plan = append(plan, step{at, last.free + p.jobs[a.index].AskProcessors})
	}
	return plan
}

// step is how many processors are free from a time until the next step.
type step struct{ at, free int64 }

// profile has the steps in their order.
type profile []step

// earliest is the first time from which that many are free for so long.
func (p profile) earliest(asked, length int64) int64 {
	for i := 0; i < len(p); {
		begin, j := p[i].at, i
		for j < len(p) && p[j].at < begin+length && p[j].free >= asked {
			j++
		}
		if j == len(p) || p[j].at >= begin+length {
			return begin
		}
		i = j + 1
	}
	panic("a job asks for more processors than there are")
}

// take uses processors from a time until another.
func (p *profile) take(from, until, asked int64) {
	for i := p.cut(from); i < p.cut(until); i++ {
		(*p)[i].free -= asked
	}
}

// cut returns the step that begins at a time, which it makes if there is none.
func (p *profile) cut(at int64) int {
	i, found := slices.BinarySearchFunc(*p, at, func(s step, at int64) int { return cmp.Compare(s.at, at) })
	if !found {
		*p = slices.Insert(*p, i, step{at, (*p)[i-1].free})
	}
	return i
}
