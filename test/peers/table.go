package main

import (
	"fmt"
	"time"
)

// printTable prints the figures side by side, and as its last line the ratios that
// docs/performance.md shows: of a burst Muster's rate over Kueue's, one at a time Muster's
// median over Kueue's.
func printTable(o options, kueue, muster, nats figures) {
	fmt.Printf("%-52s %10s %10s %8s\n", "created with a queue's label, as by kubectl", "Kueue", "Muster", "ratio")
	rate := func(what string, k, m float64) {
		fmt.Printf("%-52s %8.1f/s %8.1f/s %8s\n", what, k, m, over(m, k))
	}
	span := func(what string, k, m time.Duration) {
		fmt.Printf("%-52s %10s %10s %8s\n", what, show(k), show(m), over(m.Seconds(), k.Seconds()))
	}
	rate(fmt.Sprintf("%d gangs at once, one queue", o.burst), kueue.burst, muster.burst)
	rate(fmt.Sprintf("%d gangs at once, %d queues", o.burst, o.queues), kueue.burstQueues, muster.burstQueues)
	span("the first gang after the API server's start", kueue.first, muster.first)
	span("one at a time, p50", kueue.p50, muster.p50)
	span("one at a time, p99", kueue.p99, muster.p99)
	if !o.withoutDepth {
		span(fmt.Sprintf("a gang that fits behind %d that do not, median", o.deep), kueue.behind, muster.behind)
		rate(fmt.Sprintf("%d gangs end and are replaced, %d waiting", o.replaced, o.deep), kueue.replaced, muster.replaced)
	}
	fmt.Printf("%-52s %10.1f %10.1f %8s\n", "API writes for each gang of the first burst", kueue.writes, muster.writes, over(muster.writes, kueue.writes))
	span("processor time for each, Muster's with the load", kueue.used, muster.used)
	if o.withoutNATS {
		fmt.Printf("\nload after: %s\nratios to Kueue: kubectl burst %s idle %s\n", load(), over(muster.burst, kueue.burst), over(muster.p50.Seconds(), kueue.p50.Seconds()))
		return
	}
	fmt.Printf("\n%-52s %10s %10s %8s\n", "submitted to Muster over NATS", "Kueue", "Muster", "ratio")
	rate(fmt.Sprintf("%d gangs at once, one queue", o.burst), kueue.burst, nats.burst)
	span("one at a time, p50", kueue.p50, nats.p50)
	span("one at a time, p99", kueue.p99, nats.p99)
	fmt.Printf("\nload after: %s\nratios to Kueue: kubectl burst %s idle %s, nats burst %s idle %s\n", load(),
		over(muster.burst, kueue.burst), over(muster.p50.Seconds(), kueue.p50.Seconds()),
		over(nats.burst, kueue.burst), over(nats.p50.Seconds(), kueue.p50.Seconds()))
}

func over(a, b float64) string {
	if b == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", a/b)
}

func show(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000) }
