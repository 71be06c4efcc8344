package estimate

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"muster.dev/muster/pkg/spec/workload"
)

const (
	// kept is how many run times of a key are remembered: the last ones.
	kept = 16
	// enough run times make a key count; of fewer, the next one does.
	enough = 2
	// generation is how many keys are noted until the older half is forgotten, so that
	// many names take no more than a bounded memory.
	generation = 50_000
)

// History estimates how long workloads run from those that have ended. Its zero value is
// empty. It is not safe for concurrent use.
type History struct{ recent, older map[string]*samples }

// samples are the last run times of a key.
type samples struct {
	of   [kept]sample
	next int
	n    int
}

// sample is one run time, and what was declared for it; zero where nothing was.
type sample struct{ ran, declared time.Duration }

// Learn notes that a workload has ended by itself after it held its places for the time
// ran. What was evicted or cancelled shows nothing about how long it would have run.
func (h *History) Learn(w *workload.Workload, ran time.Duration) {
	if ran <= 0 {
		return
	}
	for _, key := range keys(w) {
		h.at(key).add(sample{ran, time.Duration(w.Life.RunTime)})
	}
}

func (h *History) at(key string) *samples {
	if found := h.recent[key]; found != nil {
		return found
	}
	if h.recent == nil || len(h.recent) >= generation {
		h.recent, h.older = map[string]*samples{}, h.recent
	}
	found := h.older[key]
	if found == nil {
		found = &samples{}
	}
	h.recent[key] = found
	return found
}

func (s *samples) add(one sample) {
	s.of[s.next] = one
	s.next, s.n = (s.next+1)%kept, min(s.n+1, kept)
}

// Predict implements RunTimes: the median of the run times of the most similar workloads
// that ran longer than this one already has. What the workload declares, and its limit,
// bound it. Where nothing similar has ended, it is what the workload declares. A workload that
// has outlived all that is known runs for half as long again.
func (h *History) Predict(w *workload.Workload, ran time.Duration) (total time.Duration, known bool) {
	declared := time.Duration(w.Life.RunTime)
	bound := declared
	if limit := time.Duration(w.Life.MaxRunTime); limit > 0 && (bound == 0 || limit < bound) {
		bound = limit
	}
	outlived := false
	for _, key := range keys(w) {
		found := h.recent[key]
		if found == nil {
			found = h.older[key]
		}
		if found == nil || found.n < enough {
			continue
		}
		if total, known = found.longer(declared, ran); known {
			break
		}
		outlived = true
	}
	if bound > 0 && (!known || total > bound) {
		total, known = bound, true
	}
	if total <= ran && (known || outlived) { // the longer it has run, the longer it may
		total, known = ran+ran/2, true
	}
	return total, known
}

// longer is the median of the run times above a bound. Those of workloads that declared
// another time count by the part of it that they took.
func (s *samples) longer(declared, ran time.Duration) (time.Duration, bool) {
	var times []time.Duration
	for _, one := range s.of[:s.n] {
		total := one.ran
		if declared > 0 && one.declared > 0 && one.declared != declared {
			total = time.Duration(float64(one.ran) / float64(one.declared) * float64(declared))
		}
		if total > ran {
			times = append(times, total)
		}
	}
	if len(times) == 0 {
		return 0, false
	}
	slices.Sort(times)
	return times[(len(times)-1)/2], true
}

// keys of a workload, the most telling one first: who submits what, of which size, to
// where; and less and less of it.
func keys(w *workload.Workload) []string {
	stem, shape := Stem(w.Name), shape(w)
	join := func(parts ...string) string { return strings.Join(parts, "\x00") }
	return []string{
		join("1", w.Queue, w.Submitter, stem, shape),
		join("2", w.Queue, w.Submitter, stem),
		join("3", w.Queue, w.Submitter, shape),
		join("4", w.Queue, w.Submitter),
		join("5", w.Queue, shape),
		join("6", w.Queue),
	}
}

// shape is the size of a gang as far as run times go by it: its pods, and the declared time.
func shape(w *workload.Workload) string {
	return strconv.Itoa(w.Pods()) + "/" + time.Duration(w.Life.RunTime).String()
}

// Stem is a name without what numbers the runs of the same work: "train-7b-20261124-3" and
// "train-7b-x2v9k" have the stem "train-7b". The first part of a name always stays.
func Stem(name string) string {
	parts := strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '.' || r == '_' })
	end := len(parts)
	for end > 1 && numbers(parts[end-1]) {
		end--
	}
	return strings.Join(parts[:end], "-")
}

// numbers reports whether a part of a name is a number, a date or a random suffix: all
// digits, or five or more characters with a digit among them.
func numbers(part string) bool {
	digits := 0
	for _, r := range part {
		if r >= '0' && r <= '9' {
			digits++
		}
	}
	return digits == len(part) || digits > 0 && len(part) >= 5
}
