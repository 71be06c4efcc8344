package estimate

import (
	"math"
	"time"
)

const (
	// window is how many scores of a class count: the last ones.
	window = 300
	// fewest scores let a class speak for itself; until then those of all classes do.
	fewest = 30
	// offset keeps short waits from weighing more than long ones: a wait of a second
	// that was estimated as two is no error.
	offset = 60 * time.Second
	// rate is how fast a level follows what its estimates cover.
	rate = 0.01
)

// Levels are the quantiles that are kept true, in order.
func Levels() []float64 { return []float64{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9} }

// The indices of the quantiles that users see.
const (
	P50 = 4
	P90 = 8
)

// Calibration turns an estimated wait into quantiles, by how far earlier estimates were off.
// It is conformal prediction: a quantile is the estimate, times that quantile of the errors
// of the last ones. Its level follows what the quantile has covered (adaptive conformal
// inference, Gibbs and Candes 2021), so that the share of starts that the p90 covers moves to
// nine of ten, unless the errors keep growing.
//
// An estimate is scored when its workload starts, so the scores of a time in which all wait
// longer come late, those of the shortest waits first. Workloads that still wait therefore
// count as well, with an error that is at least what it is by now: the quantiles are those
// of the estimator of Kaplan and Meier for such data. Its zero value is empty. It is
// not safe for concurrent use.
type Calibration struct {
	all     scores
	classes [3]scores
}

// scores are errors of estimates: the logarithm of the wait over the estimated wait.
type scores struct {
	last   []float64
	next   int
	levels []float64 // what each level is asked for; nil as long as nothing was scored
	open   []float64 // errors by now of those that still wait
	curve  *curve    // of these; nil when something has changed
}

// Pending is an estimate whose workload has waited since, and still waits.
type Pending struct{ Estimated, Waited time.Duration }

// Quantiles are the waits at each of Levels.
type Quantiles []time.Duration

// Wait records which estimates are not scored yet; it replaces those of the last call.
func (c *Calibration) Wait(pending []Pending) {
	every := []*scores{&c.all, &c.classes[0], &c.classes[1], &c.classes[2]}
	for _, s := range every {
		s.open, s.curve = s.open[:0], nil
	}
	for _, p := range pending {
		ratio := ratioOf(p.Waited, p.Estimated)
		for _, s := range []*scores{&c.all, &c.classes[class(p.Estimated)]} {
			s.open = append(s.open, ratio)
		}
	}
}

// Quantiles returns the quantiles of an estimated wait. Without earlier scores they are
// all the estimate.
func (c *Calibration) Quantiles(estimated time.Duration) Quantiles {
	s := c.of(estimated)
	if s.curve == nil {
		s.curve = newCurve(s.last, s.open)
	}
	q := make(Quantiles, len(Levels()))
	for i, level := range Levels() {
		if s.levels != nil {
			level = s.levels[i]
		}
		q[i] = scale(estimated, s.curve.quantile(level))
		if i > 0 {
			q[i] = max(q[i], q[i-1])
		}
	}
	return q
}

// Score notes the wait that an estimate and its quantiles came to.
func (c *Calibration) Score(estimated time.Duration, q Quantiles, waited time.Duration) {
	ratio := ratioOf(waited, estimated)
	c.all.add(ratio, q, waited)
	c.classes[class(estimated)].add(ratio, q, waited)
}

func ratioOf(waited, estimated time.Duration) float64 {
	return math.Log((waited + offset).Seconds() / (estimated + offset).Seconds())
}

func (s *scores) add(ratio float64, q Quantiles, waited time.Duration) {
	s.curve = nil
	if s.levels == nil {
		s.levels = Levels()
	}
	for i, level := range Levels() {
		if waited <= q[i] {
			s.levels[i] -= rate * (1 - level)
		} else {
			s.levels[i] += rate * level
		}
		s.levels[i] = min(max(s.levels[i], 0), 1)
	}
	if len(s.last) < window {
		s.last = append(s.last, ratio)
		return
	}
	s.last[s.next] = ratio
	s.next = (s.next + 1) % window
}

// of returns the scores that speak for an estimate.
func (c *Calibration) of(estimated time.Duration) *scores {
	if s := &c.classes[class(estimated)]; len(s.last) >= fewest {
		return s
	}
	return &c.all
}

// class keeps errors of short, middle and long waits apart: they differ.
func class(estimated time.Duration) int {
	switch {
	case estimated < 10*time.Minute:
		return 0
	case estimated < 2*time.Hour:
		return 1
	}
	return 2
}

func scale(estimated time.Duration, ratio float64) time.Duration {
	wait := (estimated+offset).Seconds()*math.Exp(ratio) - offset.Seconds()
	return time.Duration(max(0, math.Round(wait)) * float64(time.Second))
}
