// Package lublin makes job logs by the model of Lublin and Feitelson ("The workload on
// parallel supercomputers: modeling the characteristics of rigid jobs", JPDC 63(11), 2003;
// in use since 1999), with the parameters that the authors fitted to the jobs of three
// machines together.
//
// The logarithm of a job's size has a two-stage uniform distribution, that of its run time a
// hyper-gamma distribution whose weights depend on the size. The logarithm of the time to the
// next job has a gamma distribution, stretched by a daily cycle. The model has no requested
// times: a job asks for the time that it runs.
//
// The package is pure: the same configuration gives the same log.
package lublin

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"

	"muster.dev/muster/pkg/whatif/swf"
)

// Config is what is made.
type Config struct {
	Jobs       int
	Processors int // of the machine; the largest job asks for all
	Seed       uint64
	// Load is the part of the processors' time that the jobs ask for, to which the times
	// between them are stretched; zero leaves them as they are.
	Load float64
}

// Bounds of a configuration.
const (
	mostJobs        = 1_000_000
	leastProcessors = 8
	mostProcessors  = 100_000
	mostLoad        = 10
)

// Check returns what is wrong with the configuration; nil for nothing.
func (c Config) Check() error {
	switch {
	case c.Jobs < 1 || c.Jobs > mostJobs:
		return fmt.Errorf("%d jobs: want 1 to %d", c.Jobs, mostJobs)
	case c.Processors < leastProcessors || c.Processors > mostProcessors:
		return fmt.Errorf("%d processors: want %d to %d", c.Processors, leastProcessors, mostProcessors)
	case !(c.Load >= 0 && c.Load <= mostLoad):
		return fmt.Errorf("load %g: want at most %d, such as 0.8, or 0 for that of the model", c.Load, mostLoad)
	}
	return nil
}

// The published parameters.
const (
	serial     = 0.244 // part of the jobs of one processor
	powers     = 0.576 // part of the jobs of a power of two processors
	smallest   = 0.8   // logarithm of the size of other jobs
	belowAll   = 2.5   // how much the change of the distribution of sizes is below the machine's
	belowShare = 0.86  // part of the jobs below it
	slope      = -0.0054
	base       = 0.78
	longest    = 12 // logarithm of the longest run time, two days
	latest     = 13 // and of the longest time between two jobs, before the daily cycle
)

var (
	short   = gamma{4.2, 0.94}
	long    = gamma{312, 0.03}
	between = gamma{10.2303 * 1.0225, 0.4871}
	daily   = gamma{8.1737, 3.9631}
)

// Generate makes a log, in the order of the submissions.
//
// The error names which setting is wrong.
func Generate(c Config) (swf.Log, error) {
	if err := c.Check(); err != nil {
		return swf.Log{}, err
	}
	random := rand.New(rand.NewPCG(c.Seed, 1999))
	log := swf.Log{Headers: []swf.Header{{Key: "MaxNodes", Value: strconv.Itoa(c.Processors)}}, Jobs: make([]swf.Job, c.Jobs)}
	arrivals := newArrivals()
	at, work := make([]float64, c.Jobs), 0.0
	for i := range log.Jobs {
		at[i] = arrivals.next(random)
		size := size(c.Processors, random)
		run := max(1, int64(runTime(size, random)))
		work += float64(run) * float64(size)
		log.Jobs[i] = swf.Job{
			Line: i + 1, Number: int64(i + 1), Wait: swf.Unknown, Run: run, Processors: int64(size),
			AskProcessors: int64(size), AskTime: run, Status: 1, User: swf.Unknown, Group: swf.Unknown, Executable: swf.Unknown,
		}
	}
	stretch := 1.0
	if last := at[c.Jobs-1]; c.Load > 0 && last > 0 {
		stretch = work / (float64(c.Processors) * c.Load * last)
	}
	for i := range log.Jobs {
		log.Jobs[i].Submit = int64(at[i] * stretch)
	}
	return log, nil
}

// size draws a number of processors.
func size(processors int, random *rand.Rand) int {
	kind := random.Float64()
	if kind <= serial {
		return 1
	}
	all := math.Log2(float64(processors))
	change := max(smallest, all-belowAll)
	from, to := smallest, change
	if random.Float64() > belowShare {
		from, to = change, all
	}
	exponent := from + (to-from)*random.Float64()
	if kind <= serial+powers {
		exponent = math.Round(exponent)
	}
	return min(processors, max(1, int(math.Round(math.Exp2(exponent)))))
}

// runTime draws the seconds that a job of a size runs.
func runTime(size int, random *rand.Rand) float64 {
	shortOnes := min(1, max(0, slope*float64(size)+base))
	for {
		of := short
		if random.Float64() > shortOnes {
			of = long
		}
		if logarithm := of.draw(random); logarithm <= longest {
			return math.Exp(logarithm)
		}
	}
}
