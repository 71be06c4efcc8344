package main

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"time"
)

// slow is what a statement takes, and a goroutine waits, that counts as a cause.
const slow = 5 * time.Millisecond

// collections are when cycles of the garbage collector of this process, which the services are in,
// have ended.
type collections struct{ ends []time.Time }

// note notes the cycles that have ended since it was called last; more than 256 are cut.
func (c *collections) note() {
	var stats debug.GCStats
	debug.ReadGCStats(&stats)
	for _, end := range slices.Backward(stats.PauseEnd) { // the latest is first
		if len(c.ends) == 0 || end.After(c.ends[len(c.ends)-1]) {
			c.ends = append(c.ends, end)
		}
	}
}

// during reports whether a cycle has ended while a gang was on its way.
func (c *collections) during(one sample) bool {
	return slices.ContainsFunc(c.ends, func(end time.Time) bool { return end.After(one.began) && end.Before(one.created) })
}

// waits are how long goroutines that could run have waited for a processor.
type waits struct {
	sample []metrics.Sample
	before []uint64
}

func newWaits() *waits { return &waits{sample: []metrics.Sample{{Name: "/sched/latencies:seconds"}}} }

// longest returns the longest wait since it was called last, by the lower bound of its bucket.
func (w *waits) longest() (longest time.Duration) {
	metrics.Read(w.sample)
	histogram := w.sample[0].Value.Float64Histogram()
	for i, count := range histogram.Counts {
		if (i >= len(w.before) || count > w.before[i]) && count > 0 && !math.IsInf(histogram.Buckets[i], -1) {
			longest = time.Duration(histogram.Buckets[i] * float64(time.Second))
		}
	}
	w.before = slices.Clone(histogram.Counts)
	return longest
}

// slowStatements are settings with which Postgres logs statements that are slow, with the time in
// seconds since 1970.
func slowStatements() map[string]string {
	return map[string]string{"log_min_duration_statement": strconv.FormatInt(slow.Milliseconds(), 10), "log_line_prefix": "'%n '"}
}

// statement is one that Postgres has logged.
type statement struct {
	began, ended time.Time
	commit       bool
}

type statements []statement

// statementLine is a line of the log: its time, and how long the statement took.
var statementLine = regexp.MustCompile(`^(\d+\.\d+) LOG:\s+duration: (\d+\.\d+) ms\s+(.*)$`)

// readStatements reads the statements in a log of Postgres.
func readStatements(path string) (statements, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the log of Postgres: %w", err)
	}
	return statementsOf(string(content))
}

func statementsOf(log string) (found statements, err error) {
	for line := range strings.Lines(log) {
		parts := statementLine.FindStringSubmatch(strings.TrimSpace(line))
		if parts == nil {
			continue
		}
		at, err := strconv.ParseFloat(parts[1], 64)
		if err != nil {
			return nil, fmt.Errorf("read the log of Postgres: line %q: %w", line, err)
		}
		took, err := time.ParseDuration(parts[2] + "ms")
		if err != nil {
			return nil, fmt.Errorf("read the log of Postgres: line %q: %w", line, err)
		}
		ended := time.UnixMilli(int64(at * 1000))
		found = append(found, statement{ended.Add(-took), ended, strings.HasPrefix(strings.ToLower(parts[3]), "statement: commit")})
	}
	return found, nil
}

// during reports whether a commit, or another statement, was slow while a gang was on its way.
func (s statements) during(one sample, commit bool) bool {
	return slices.ContainsFunc(s, func(of statement) bool {
		return of.commit == commit && of.began.Before(one.created) && of.ended.After(one.began)
	})
}
