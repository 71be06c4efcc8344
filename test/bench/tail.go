package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"muster.dev/muster/pkg/service/pause"
	"muster.dev/muster/test/bench/figures"
)

// sample is one gang that was submitted alone.
type sample struct {
	began, created time.Time
	stages         []time.Duration // as stageNames
	waits          time.Duration   // the longest that a goroutine of this process waited for a processor
}

func (s sample) took() time.Duration { return s.created.Sub(s.began) }

// slowest is the share of the samples whose causes are shown.
const slowest = 0.01

// tail submits gangs one at a time, as idle does, and shows of the slowest in which stage they lost
// their time, and what happened meanwhile, beside how often that happened during all of them.
func tail(ctx context.Context, o options) error {
	o.postgres = slowStatements()
	s, err := open(ctx, o, "tail")
	if err != nil {
		return err
	}
	defer s.close()
	ctx, cancel := context.WithCancel(ctx) // ends the watch before its API server
	defer cancel()
	seen, err := s.watch(ctx)
	if err != nil {
		return err
	}
	passing, err := s.listen()
	if err != nil {
		return err
	}
	header := figures.Header(fmt.Sprintf("What the slowest of %d gangs waited for, one at a time", o.idle))
	var all []sample
	collections, waits := &collections{}, newWaits()
	for i := range o.idle {
		waits.longest() // since the last gang does not count
		began, created, err := s.submitAlone(ctx, fmt.Sprintf("gang-%d", i), seen, passing)
		if err != nil {
			return err
		}
		one := sample{began: began, created: created, stages: passing.end(began, created), waits: waits.longest()}
		if collections.note(); one.stages != nil {
			all = append(all, one)
		}
		if err := pause.For(ctx, settleFor); err != nil {
			return err
		}
	}
	statements, err := readStatements(s.database.LogFile())
	if err != nil {
		return err
	}
	fmt.Println(header)
	printTail(all, []cause{
		{"a collection of garbage in Muster's process", func(one sample) bool { return collections.during(one) }},
		{"a goroutine that waited for a processor", func(one sample) bool { return one.waits >= slow }},
		{"a commit in Postgres", func(one sample) bool { return statements.during(one, true) }},
		{"another statement in Postgres", func(one sample) bool { return statements.during(one, false) }},
	})
	return nil
}

// cause is something that may make a gang slow.
type cause struct {
	name string
	of   func(sample) bool
}

// printTail prints the table.
func printTail(all []sample, causes []cause) {
	if len(all) == 0 {
		fmt.Printf("  no gang was seen in all of its stages\n\n")
		return
	}
	ordered := slices.SortedFunc(slices.Values(all), func(a, b sample) int { return cmp.Compare(b.took(), a.took()) })
	worst := ordered[:max(1, int(slowest*float64(len(ordered))))]
	fmt.Printf("  the slowest %d of %d: %s to %s; p50 %s\n", len(worst), len(all),
		figures.Millis(worst[len(worst)-1].took()), figures.Millis(worst[0].took()), figures.Millis(ordered[len(ordered)/2].took()))
	shares := lostIn(worst, all)
	fmt.Printf("  %-44s %12s\n", "stage", "of the loss")
	for i, name := range stageNames() {
		fmt.Printf("    %-42s %10.0f %%\n", name, 100*shares[i])
	}
	fmt.Printf("  %-44s %12s %12s\n", fmt.Sprintf("meanwhile there was (%s or more)", slow), "slowest", "all")
	for _, c := range causes {
		fmt.Printf("    %-42s %10.0f %% %10.0f %%\n", c.name, 100*shareOf(worst, c), 100*shareOf(all, c))
	}
	fmt.Println()
}

// lostIn returns the share of each stage in what the worst took beyond the medians of all.
func lostIn(worst, all []sample) []float64 {
	lost, sum := make([]float64, len(stageNames())), 0.0
	for i := range lost {
		var took []time.Duration
		for _, one := range all {
			took = append(took, one.stages[i])
		}
		usual := figures.Quantile(took, 0.5)
		for _, one := range worst {
			lost[i] += max(0, one.stages[i]-usual).Seconds()
		}
		sum += lost[i]
	}
	for i := range lost {
		if sum > 0 {
			lost[i] /= sum
		}
	}
	return lost
}

func shareOf(samples []sample, c cause) float64 {
	had := 0
	for _, one := range samples {
		if c.of(one) {
			had++
		}
	}
	return float64(had) / float64(len(samples))
}
