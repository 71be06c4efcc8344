package main

import (
	"fmt"
	"time"

	"muster.dev/muster/test/bench/figures"
)

// table has the figures of a kind of gangs side by side.
type table struct {
	o                   options
	kueue, muster, nats results
}

// rate prints gangs a second, the median of the rounds and the spread of each peer; nothing of
// what was not measured.
func rate(what string, k, m []float64) {
	if len(m) > 0 {
		fmt.Printf("%-52s %8.1f/s %8.1f/s %8s   %s; %s\n", what, figures.Median(k), figures.Median(m), over(figures.Median(m), figures.Median(k)), figures.Spread(k), figures.Spread(m))
	}
}

// span prints a quantile of times, and what half of them are between.
func span(what string, k, m []time.Duration, q float64) {
	if len(m) > 0 {
		ofK, ofM := figures.Quantile(k, q), figures.Quantile(m, q)
		fmt.Printf("%-52s %10s %10s %8s   %s; %s\n", what, figures.Millis(ofK), figures.Millis(ofM), over(ofM.Seconds(), ofK.Seconds()), figures.Middle(k), figures.Middle(m))
	}
}

// rounds prints the median of one time in each round, and the smallest and the largest of each peer.
func rounds(what string, k, m []time.Duration) {
	if len(m) > 0 {
		ofK, ofM := figures.Quantile(k, 0.5), figures.Quantile(m, 0.5)
		fmt.Printf("%-52s %10s %10s %8s   %s; %s\n", what, figures.Millis(ofK), figures.Millis(ofM), over(ofM.Seconds(), ofK.Seconds()), figures.Between(k), figures.Between(m))
	}
}

// count prints the median of a count in each round, and the spread of each peer.
func count(what string, k, m []float64) {
	if len(m) > 0 {
		fmt.Printf("%-52s %10.1f %10.1f %8s   %s; %s\n", what, figures.Median(k), figures.Median(m), over(figures.Median(m), figures.Median(k)), figures.Spread(k), figures.Spread(m))
	}
}

func titles(header string) {
	fmt.Printf("%s\n%-52s %10s %10s %8s   %s\n", header, "", "Kueue", "Muster", "ratio", "spread of Kueue; of Muster")
}

// print prints the table.
func (t *table) print(header string) {
	titles(header)
	o, k, m := t.o, &t.kueue, &t.muster
	rate(fmt.Sprintf("%d gangs at once, one queue", o.burst), k.burst, m.burst)
	rate(fmt.Sprintf("%d gangs at once, %d queues", o.burst, o.queues), k.burstQueues, m.burstQueues)
	rounds("the first gang of a round, after a dry run by Muster", k.first, m.first)
	span("one at a time, p50", k.idle, m.idle, 0.50)
	span("one at a time, p99", k.idle, m.idle, 0.99)
	span(fmt.Sprintf("a gang that fits behind %d that do not, median", o.deep), k.behind, m.behind, 0.50)
	rate(fmt.Sprintf("%d gangs end and are replaced, %d waiting", o.replaced, o.deep), k.replaced, m.replaced)
	count("API writes for each gang of a burst", k.writes, m.writes)
	rounds("processor time for each, Muster's with the load", k.used, m.used)
	fmt.Printf("load after: %s\n\n", figures.Load())
}

// printNATS prints what was measured over NATS, beside Kueue's figures.
func (t *table) printNATS(header string) {
	titles(header)
	rate(fmt.Sprintf("%d gangs at once, one queue", t.o.burst), t.kueue.burst, t.nats.burst)
	span("one at a time, p50", t.kueue.idle, t.nats.idle, 0.50)
	span("one at a time, p99", t.kueue.idle, t.nats.idle, 0.99)
	fmt.Printf("load after: %s\n\n", figures.Load())
}

// printRatios prints the last line: of a burst Muster's rate over Kueue's, one at a time Muster's
// median over Kueue's; "-" of what was not measured.
func (t *table) printRatios() {
	burst := func(of []float64) string { return over(figures.Median(of), figures.Median(t.kueue.burst)) }
	idle := func(of []time.Duration) string {
		return over(figures.Quantile(of, 0.5).Seconds(), figures.Quantile(t.kueue.idle, 0.5).Seconds())
	}
	fmt.Printf("ratios to Kueue: kubectl burst %s idle %s, nats burst %s idle %s\n", burst(t.muster.burst), idle(t.muster.idle), burst(t.nats.burst), idle(t.nats.idle))
}

func over(a, b float64) string {
	if a == 0 || b == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", a/b)
}
