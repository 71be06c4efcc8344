package workload

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/pkg/spec/resource"
)

// Limits are a queue's maxima: what a workload of it may ask for, at most. A
// submission that asks for more is refused. Rules.For applies the limits of time
// again, so that a workload that was taken in before a limit was set keeps to it,
// too.
//
// A zero value is the default of the field.
type Limits struct {
	// CheckpointGrace bounds the time between the announcement of an eviction and
	// the deletion, and the termination grace of each pod, which comes on top of it.
	CheckpointGrace Duration `json:"checkpointGrace,omitzero"`
	// ReadyDeadline bounds the time to start, and to be whole again after a loss.
	ReadyDeadline Duration `json:"readyDeadline,omitzero"`
	// ForceAfter bounds how long a pod that does not end may stay.
	ForceAfter Duration `json:"forceAfter,omitzero"`
	// MaxRunTime, IdleTime and CheckpointInterval bound these times of a workload that
	// asks for them, and are those of one that does not, where the queue sets none. Their
	// defaults are the queue's own times, and no bound where it has none.
	MaxRunTime         Duration `json:"maxRunTime,omitzero"`
	IdleTime           Duration `json:"idleTime,omitzero"`
	CheckpointInterval Seconds  `json:"checkpointInterval,omitzero"`
	// EndAtRunTime ends a workload that has run for longer than it declared.
	EndAtRunTime bool `json:"endAtRunTime,omitempty"`
	// Retries bounds how often a workload is queued again, Pause the time between.
	Retries *int     `json:"retries,omitempty"`
	Pause   Duration `json:"pause,omitzero"`
	// SuccessTTL bounds how long an AppWrapper that has succeeded stays.
	SuccessTTL Duration `json:"successTTL,omitzero"`
	// Priority bounds the number that a submission may give, and the value of a
	// priority class unless PriorityClasses lists it.
	Priority *int32 `json:"priority,omitempty"`
	// PriorityClasses are those that a submission may name; empty for all whose
	// value is within Priority, or for all where Priority is not set either.
	PriorityClasses []string `json:"priorityClasses,omitempty"`
	// Pods and Resources bound one workload; zero and absent for no bound.
	Pods      int       `json:"pods,omitempty"`
	Resources Resources `json:"resources,omitempty"`
	// Workloads bounds those of the queue that have not ended; zero for the bound that
	// queue-manager has for every queue.
	Workloads int `json:"workloads,omitempty"`
}

// Defaults of a queue's limits. Where the queue's own rule asks for more than one
// of these times, that is the limit.
const (
	DefaultMostGrace         = 30 * time.Minute
	DefaultMostReadyDeadline = 4 * time.Hour
	DefaultMostForceAfter    = time.Hour
	DefaultMostRetries       = 1000
	DefaultMostPause         = 24 * time.Hour
	DefaultMostSuccessTTL    = 7 * 24 * time.Hour
	DefaultMostPriority      = 1000
)

// limits returns the limits with their defaults, for rules that have theirs.
func (r Rules) limits() Limits {
	l := r.Limits
	fill := func(field *Duration, values ...Duration) {
		if *field == 0 {
			*field = slices.Max(values)
		}
	}
	fill(&l.CheckpointGrace, Duration(DefaultMostGrace), r.CheckpointGrace)
	fill(&l.ReadyDeadline, Duration(DefaultMostReadyDeadline), r.ReadyDeadline)
	fill(&l.ForceAfter, Duration(DefaultMostForceAfter), r.ForceAfter)
	fill(&l.MaxRunTime, r.MaxRunTime)
	fill(&l.IdleTime, r.IdleTime)
	l.CheckpointInterval = cmp.Or(l.CheckpointInterval, r.CheckpointInterval)
	fill(&l.Pause, Duration(DefaultMostPause), r.BackoffMost)
	fill(&l.SuccessTTL, Duration(DefaultMostSuccessTTL))
	if l.Retries == nil {
		most := max(DefaultMostRetries, *r.Requeues)
		l.Retries = &most
	}
	return l
}

// within keeps the times of a workload within the limits of its queue.
func (r Rules) within(l Limits) Rules {
	most := func(field *Duration, most Duration) { *field = min(*field, most) }
	most(&r.CheckpointGrace, l.CheckpointGrace)
	most(&r.ReadyDeadline, l.ReadyDeadline)
	most(&r.ForceAfter, l.ForceAfter)
	most(&r.BackoffFirst, l.Pause)
	most(&r.BackoffMost, l.Pause)
	shorten(&r.MaxRunTime, l.MaxRunTime)
	shorten(&r.IdleTime, l.IdleTime)
	shorten(&r.CheckpointInterval, l.CheckpointInterval)
	if l.EndAtRunTime && r.RunTime > 0 {
		shorten(&r.MaxRunTime, r.RunTime)
	}
	if *r.Requeues > *l.Retries {
		r.Requeues = l.Retries
	}
	if r.Tolerance != nil && r.Tolerance.LossDeadline > l.ReadyDeadline {
		t := *r.Tolerance
		t.LossDeadline = l.ReadyDeadline
		r.Tolerance = &t
	}
	return r
}

// shorten keeps a time within a limit, where zero is no end at all.
func shorten[T Duration | Seconds](field *T, most T) {
	if most > 0 && (*field == 0 || *field > most) {
		*field = most
	}
}

// Exceeded returns what of the workload is more than its queue allows, as a
// fault.List whose faults name the value, the maximum and the remedy; nil for
// nothing. class is the priority class that gave the workload its priority.
func (r Rules) Exceeded(w *Workload, class string) error {
	r = r.WithDefaults()
	l, life := r.limits(), w.Life
	var faults fault.List
	long := func(what string, asked, most Duration) {
		if most > 0 && asked > most {
			faults.Add(what, "is %s, but queue %q allows %s at most; ask for that or less", time.Duration(asked), w.Queue, time.Duration(most))
		}
	}
	long("checkpoint grace", life.CheckpointGrace, l.CheckpointGrace)
	long("ready deadline", life.ReadyDeadline, l.ReadyDeadline)
	long("maximum run time", life.MaxRunTime, l.MaxRunTime)
	long("idle time", life.IdleTime, l.IdleTime)
	long("checkpoint interval", life.CheckpointInterval.Duration(), l.CheckpointInterval.Duration())
	if t := life.Tolerance; t != nil {
		long("time to be whole again after a loss", t.LossDeadline, l.ReadyDeadline)
		long("time to keep it after its success", t.SuccessTTL, l.SuccessTTL)
		long("time until deletion by force", t.ForceAfter, l.ForceAfter)
		long("pause between retries", t.Pause, l.Pause)
		if t.Retries != nil && *t.Retries > *l.Retries {
			faults.Add("retries", "are %d, but queue %q allows %d at most; ask for that or less", *t.Retries, w.Queue, *l.Retries)
		}
	}
	l.priority(&faults, w, class)
	l.size(&faults, w)
	return faults.Err()
}

// TooLarge returns how the workload has more pods, or asks for more, than its queue
// allows one, as Exceeded does.
func (r Rules) TooLarge(w *Workload) error {
	var faults fault.List
	r.Limits.size(&faults, w)
	return faults.Err()
}

func (l Limits) size(faults *fault.List, w *Workload) {
	if pods := w.Pods(); l.Pods > 0 && pods > l.Pods {
		faults.Add("pods", "are %d, but queue %q allows a workload %d at most; ask for fewer", pods, w.Queue, l.Pods)
	}
	if len(l.Resources) == 0 {
		return
	}
	asked := w.Requests()
	for _, name := range slices.Sorted(maps.Keys(l.Resources)) {
		most, err := resource.Parse(name, string(l.Resources[name]))
		if err == nil && asked[name] > most {
			faults.Add(string(name), "is %s in all, but queue %q allows a workload %s at most; ask for less",
				resource.Format(name, asked[name]), w.Queue, resource.Format(name, most))
		}
	}
}

// priority checks the priority and the class that gave it.
func (l Limits) priority(faults *fault.List, w *Workload, class string) {
	if class != "" && len(l.PriorityClasses) > 0 {
		if !slices.Contains(l.PriorityClasses, class) {
			faults.Add("priority class", "is %q, but queue %q allows only: %s; name one of them", class, w.Queue, strings.Join(l.PriorityClasses, ", "))
		}
		return
	}
	most := int32(DefaultMostPriority)
	switch {
	case l.Priority != nil:
		most = *l.Priority
	case class != "":
		return
	}
	if w.Priority > most {
		of := ""
		if class != "" {
			of = fmt.Sprintf(" of class %q", class)
		}
		faults.Add("priority", "is %d%s, but queue %q allows %d at most; ask for that or less", w.Priority, of, w.Queue, most)
	}
}

// Grace returns the longest termination grace that a pod of the queue may have.
func (r Rules) Grace() time.Duration { return time.Duration(r.WithDefaults().limits().CheckpointGrace) }

// ValidateLimits returns what of the limits cannot be, beside the queue's own rules, as a
// fault.List.
func (r Rules) ValidateLimits() error {
	r = r.WithDefaults()
	l := r.Limits
	var faults fault.List
	for _, limit := range []struct {
		field     string
		own, most Duration
		rule      string
	}{
		{"checkpointGrace", r.CheckpointGrace, l.CheckpointGrace, "checkpointGrace"},
		{"readyDeadline", r.ReadyDeadline, l.ReadyDeadline, "readyDeadline"},
		{"forceAfter", r.ForceAfter, l.ForceAfter, "forceAfter"},
		{"maxRunTime", r.MaxRunTime, l.MaxRunTime, "maxRunTime"},
		{"idleTime", r.IdleTime, l.IdleTime, "idleTime"},
		{"checkpointInterval", r.CheckpointInterval.Duration(), l.CheckpointInterval.Duration(), "checkpointInterval"},
		{"pause", r.BackoffMost, l.Pause, "backoffMost"},
	} {
		if limit.most > 0 && limit.own > limit.most {
			faults.Add(limit.field, "%s is less than the queue's own %s, which is %s; raise the limit or lower that",
				time.Duration(limit.most), limit.rule, time.Duration(limit.own))
		}
	}
	if l.Retries != nil && *l.Retries < *r.Requeues {
		faults.Add("retries", "%d is less than the queue's own requeues, which are %d; raise the limit or lower them", *l.Retries, *r.Requeues)
	}
	for _, limit := range []struct {
		field string
		most  int
	}{{"pods", l.Pods}, {"workloads", l.Workloads}} {
		if limit.most < 0 {
			faults.Add(limit.field, "%d: want 1 or more, or leave it out for no limit", limit.most)
		}
	}
	for i, class := range l.PriorityClasses {
		if class == "" {
			faults.Add(fault.Index("priorityClasses", i), "is empty; want the name of a workloadPriorityClass")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(l.Resources)) {
		if _, err := resource.Parse(name, string(l.Resources[name])); err != nil {
			faults.Add("resources."+string(name), "%s", err)
		}
	}
	return faults.Err()
}
