package sim

import (
	"container/heap"
	"fmt"
	"hash"
	"hash/fnv"
	"math/rand/v2"
	"muster.dev/muster/services/queue-manager/simhooks"
	"time"
)

// Options is how a run is made.
type Options struct {
	Seed uint64
	// Script is which faults there are instead of what the seed draws; nil for
	// the seed's.
	Script *Script
	// Bug is a planted fault of the software itself, to show that it is found.
	Bug Bug
	// Tables, unless nil, are real ones that are written in lockstep with the played
	// ledger.
	Tables Tables
	// Verbose keeps every line of the story, not only the last ones.
	Verbose bool
}

// Result is what came of a run.
type Result struct {
	Seed   uint64
	Events int
	// Faults that happened, by kind.
	Faults map[Fault]int
	// Script is the faults that happened, to repeat them.
	Script Script
	// Made is what came about, by name, to hold what is drawn to matter.
	Made map[string]int
	// Breach of a promise; nil when all were kept.
	Breach *Breach
	// Story is what happened, the last lines of it.
	Story []string
	// Hash of all that was committed and done: the same run has the same.
	Hash uint64
	// Compared is what was compared with real tables.
	Compared Compared
	// Simulated is how much time went by in the run.
	Simulated time.Duration
}

// Breach is a promise that was not kept.
type Breach struct {
	Promise string // G1 to G8
	Message string
	At      time.Duration
}

func (b *Breach) Error() string { return fmt.Sprintf("%s at %s: %s", b.Promise, b.At, b.Message) }

// World is a run.
type World struct {
	Options
	start, now time.Time
	agenda     agenda
	scheduled  int64
	events     int
	random     *rand.Rand // of latencies and of who comes first
	cur        *proc      // the coroutine that runs
	policed    bool       // see ruled
	unheard    bool       // no answer will come of what is being done
	// unrecovered is a note in NATS of what a term could not recover.
	unrecovered simhooks.Unrecovered

	nemesis  *nemesis
	disk     *ledger
	net      *network
	cluster  *cluster
	submits  *submitter
	operator *operator
	check    *checker
	machines []*machine

	story []string
	hash  hash.Hash64
	ended bool
}

// storyKept bounds the lines of a story.
const storyKept = 60

// happening is something that happens at a time.
type happening struct {
	at    time.Time
	order int64
	do    func()
}

type agenda []happening

func (a agenda) Len() int      { return len(a) }
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a agenda) Less(i, j int) bool {
	if !a[i].at.Equal(a[j].at) {
		return a[i].at.Before(a[j].at)
	}
	return a[i].order < a[j].order
}
func (a *agenda) Push(x any) { *a = append(*a, x.(happening)) }
func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

// after has something done later.
func (w *World) after(d time.Duration, do func()) {
	w.scheduled++
	heap.Push(&w.agenda, happening{w.now.Add(d), w.scheduled, do})
}

// latency is a short time, now and then a long one.
func (w *World) latency() time.Duration {
	if w.random.IntN(40) == 0 {
		return w.between(10*time.Millisecond, 400*time.Millisecond)
	}
	return w.between(200*time.Microsecond, 5*time.Millisecond)
}

func (w *World) between(least, most time.Duration) time.Duration {
	return least + time.Duration(w.random.Int64N(int64(most-least))).Truncate(time.Microsecond)
}

// tight reports that quota is scarce in this seed, and that leaders take turns: so it
// is in one of four from 1000 on.
func (w *World) tight() bool { return w.Seed >= 1000 && w.Seed%4 == 3 }

// ruled reports that there are cohorts, preemption and fair sharing in this seed, that
// the configuration changes and that gangs grow and shrink: so it is in one of four
// from 1001 on where the database refuses nothing. In every second of them leaders
// take turns.
func (w *World) ruled() bool { return w.policed }

func (w *World) takesTurns() bool { return w.tight() || w.ruled() && w.Seed%8 == 1 }

// narrate adds a line to the story.
func (w *World) narrate(format string, args ...any) {
	line := fmt.Sprintf("%9.3fs  ", w.now.Sub(w.start).Seconds()) + fmt.Sprintf(format, args...)
	fmt.Fprintln(w.hash, line)
	w.story = append(w.story, line)
	if !w.Verbose && len(w.story) > 2*storyKept {
		w.story = append([]string(nil), w.story[len(w.story)-storyKept:]...)
	}
}

// breach ends the run.
func (w *World) breach(promise, format string, args ...any) {
	if w.check.breach == nil {
		w.check.breach = &Breach{Promise: promise, Message: fmt.Sprintf(format, args...), At: w.now.Sub(w.start)}
		w.narrate("BREACH of %s: %s", promise, w.check.breach.Message)
	}
}

// limits of a run.
const (
	// faultsFor is how long there are faults, calmFor how long after that all must
	// have come to its end: the bound of G3, G5 and G6.
	faultsFor = 3 * time.Minute
	calmFor   = 15 * time.Minute
	// maxEvents bounds a run that goes in circles. An hour without the API server has
	// had nine million.
	maxEvents = 12_000_000
)

// Run runs a seed.
func Run(o Options) Result {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	w := &World{Options: o, start: start, now: start, random: rand.New(rand.NewPCG(o.Seed, 1)), hash: fnv.New64a()}
	w.policed = o.Seed >= 1000 && o.Seed%4 == 1 && !w.is(classRefused)
	w.check = newChecker(w)
	w.nemesis = newNemesis(w)
	w.disk = newLedger(w)
	w.operator = &operator{w: w, wanted: w.disk.first}
	w.net = newNetwork(w)
	w.cluster = newCluster(w)
	w.submits = newSubmitter(w)
	w.build()
	w.nemesis.begin()
	w.loop()
	w.disk.real.look()
	for _, m := range w.machines {
		m.stop()
	}
	result := Result{
		Seed: o.Seed, Events: w.events, Faults: w.nemesis.counts, Script: w.nemesis.happened, Made: w.check.made, Breach: w.check.breach,
		Hash: w.hash.Sum64(), Simulated: w.now.Sub(w.start), Story: w.story,
	}
	if tables := w.disk.real; tables != nil {
		result.Compared = tables.Compared
		tables.close()
	}
	if !o.Verbose && len(result.Story) > storyKept {
		result.Story = result.Story[len(result.Story)-storyKept:]
	}
	return result
}

func (w *World) loop() {
	for len(w.agenda) > 0 && w.check.breach == nil && !w.ended {
		next := heap.Pop(&w.agenda).(happening)
		w.now = next.at
		next.do()
		w.events++
		w.check.after()
		if w.events > maxEvents {
			w.breach("G3", "%d events, and no end", w.events)
		}
	}
}
