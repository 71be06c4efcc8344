package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// occurrence is one line of go test -json (go doc test2json), or of the build
// before it.
type occurrence struct {
	Time                          time.Time
	Action, Package, Test, Output string
	Elapsed                       float64
	ImportPath                    string // of build-output and build-fail
	FailedBuild                   string // of a package that did not compile
}

// test names one test of one package; Name is empty for the package as a whole.
type test struct{ Package, Name string }

// duration is how long a test, or all tests of a package, took, in seconds.
type duration struct {
	Name    string
	Elapsed float64
}

// tally counts tests and keeps the output of those whose end is not known yet.
type tally struct {
	out                     io.Writer
	began                   time.Time
	passed, failed, skipped int
	packages, tests         []duration // packages that passed with a test, and tests of top level that passed
	spent                   []duration // processor time of packages
	broken                  bool       // something failed that is no test
	fatal                   bool       // a panic, a data race, a package that fails beside its tests
	running                 map[test]time.Time
	output                  map[test][]string
	ended                   map[string]int // tests that ended, by package
	skips, failures         []string
	again                   []test // of top level, that failed without a panic or a data race
	spoke                   time.Time
}

func newTally(out io.Writer, began time.Time) *tally {
	return &tally{
		out: out, began: began, spoke: began,
		running: map[test]time.Time{}, output: map[test][]string{}, ended: map[string]int{},
	}
}

// line takes one line of input. What is not JSON comes from the go command
// itself and is shown as it is.
func (t *tally) line(line []byte) {
	var o occurrence
	if err := json.Unmarshal(line, &o); err != nil {
		t.printf("%s", strings.TrimRight(string(line), "\n"))
		return
	}
	key := test{o.Package, o.Test}
	switch o.Action {
	case "build-output":
		t.printf("%s", strings.TrimRight(o.Output, "\n"))
	case "build-fail":
		t.broken, t.fatal = true, true
	case "run":
		t.running[key] = o.Time
	case "output":
		if spent, is := spentIn(o.Output); is && o.Test == "" {
			t.spent = append(t.spent, duration{o.Package, spent.Seconds()})
			return
		}
		t.fatal = t.fatal || strings.HasPrefix(o.Output, "panic: ") || strings.HasPrefix(o.Output, "WARNING: DATA RACE")
		t.output[key] = append(t.output[key], o.Output)
	case "pass", "fail", "skip":
		if o.Test == "" {
			t.packageEnded(o)
		} else {
			t.testEnded(o)
		}
		delete(t.running, key)
		delete(t.output, key)
	}
}

func (t *tally) testEnded(o occurrence) {
	key := test{o.Package, o.Test}
	t.ended[o.Package]++
	switch o.Action {
	case "pass":
		t.passed++
		if !strings.Contains(key.Name, "/") {
			t.tests = append(t.tests, duration{key.Package + "." + key.Name, o.Elapsed})
		}
	case "skip":
		t.skipped++
		t.skips = append(t.skips, fmt.Sprintf("%s.%s: %s", o.Package, o.Test, reason(t.output[key])))
	case "fail":
		t.failed++
		if !strings.Contains(key.Name, "/") {
			t.again = append(t.again, key)
		}
		t.failures = append(t.failures, fmt.Sprintf("%s.%s: %s", o.Package, o.Test, strings.Join(messages(t.output[key]), "; ")))
		t.printf("--- %s.%s\n%s", o.Package, o.Test, strings.Join(t.output[key], ""))
	}
}

func (t *tally) packageEnded(o occurrence) {
	tests := t.ended[o.Package]
	switch {
	case o.Action == "fail":
		t.broken = true
		t.fatal = t.fatal || !slices.ContainsFunc(t.again, func(failed test) bool { return failed.Package == o.Package })
		t.showUnfinished(o.Package)
		if o.FailedBuild != "" {
			t.printf("FAIL  %s  does not compile", o.Package)
		} else {
			t.printf("FAIL  %s  %.1fs", o.Package, o.Elapsed)
		}
	case tests > 0:
		t.packages = append(t.packages, duration{o.Package, o.Elapsed})
		t.printf("ok    %s  %.1fs  %d tests", o.Package, o.Elapsed, tests)
	}
}

// showUnfinished prints what a failed package said outside of tests that ended:
// a panic, a data race, a test that was cut off.
func (t *tally) showUnfinished(pkg string) {
	for key, lines := range t.output {
		if key.Package != pkg {
			continue
		}
		if text := strings.Join(lines, ""); strings.TrimSpace(text) != "FAIL" {
			t.printf("--- %s %s (no end)\n%s", pkg, key.Name, text)
		}
		delete(t.output, key)
	}
}

// tick prints what has been running for long when nothing was said lately.
func (t *tally) tick(now time.Time) {
	if now.Sub(t.spoke) < heartbeat/2 {
		return
	}
	var oldest test
	for key, since := range t.running {
		if oldest.Name == "" || since.Before(t.running[oldest]) {
			oldest = key
		}
	}
	if oldest.Name == "" {
		t.printf("      %s: compiling", now.Sub(t.began).Round(time.Second))
		return
	}
	t.printf("      %s: %d tests so far; %s.%s runs since %s", now.Sub(t.began).Round(time.Second),
		t.passed+t.failed+t.skipped, oldest.Package, oldest.Name, now.Sub(t.running[oldest]).Round(time.Second))
}

// How many of the longest packages and tests are listed, and from how many seconds on one is
// long.
const (
	longestPackages = 5
	longestTests    = 10
	longestFrom     = 10
)

// printLongest prints the longest of some packages or tests, behind what they are.
func (t *tally) printLongest(what string, all []duration, most int) {
	slices.SortStableFunc(all, func(a, b duration) int { return cmp.Compare(b.Elapsed, a.Elapsed) })
	for _, long := range all[:min(len(all), most)] {
		if long.Elapsed >= longestFrom {
			t.printf("%s  %s  %.1fs", what, long.Name, long.Elapsed)
		}
	}
}

// close prints the longest packages and tests, the packages that spent the most processor time, what
// was skipped, why tests failed, and the totals, and reports whether the run was good. A run without a
// test is not.
func (t *tally) close(now time.Time) bool {
	t.printLongest("longest", t.packages, longestPackages)
	t.printLongest("longest", t.tests, longestTests)
	t.printLongest("most processor time", t.spent, longestTests)
	total := 0.0
	for _, each := range t.spent {
		total += each.Elapsed
	}
	if total >= longestFrom {
		t.printf("processor time of all tests: %.0fs, without compiling, linking and containers", total)
	}
	slices.Sort(t.skips)
	for _, skip := range t.skips {
		t.printf("skipped  %s", skip)
	}
	for _, failure := range t.failures {
		t.printf("failed   %s", failure)
	}
	t.printf("%d passed, %d failed, %d skipped in %s (%d packages)",
		t.passed, t.failed, t.skipped, now.Sub(t.began).Round(time.Second), len(t.packages))
	return t.passed > 0 && t.failed == 0 && !t.broken
}

// againMost is how many failed tests, of thousands, may be run again: more is no chance.
const againMost = 12

// runAgain lists the tests of top level that failed, as "package name", when nothing
// else is wrong and they are few: they may have failed by chance.
func (t *tally) runAgain() (lines []string) {
	if t.fatal || len(t.again) > againMost {
		return nil
	}
	for _, failed := range t.again {
		lines = append(lines, failed.Package+" "+failed.Name+"\n")
	}
	return lines
}

func (t *tally) printf(format string, args ...any) {
	t.spoke = time.Now()
	fmt.Fprintf(t.out, format+"\n", args...)
}

// reason is what a skipped test said last before the line that tells of its
// skip: "    file_test.go:12: why".
func reason(output []string) string {
	for _, line := range slices.Backward(output) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "--- SKIP") || strings.HasPrefix(line, "===") {
			continue
		}
		if _, rest, found := strings.Cut(line, ".go:"); found {
			if _, why, found := strings.Cut(rest, ": "); found {
				return why
			}
		}
		return line
	}
	return "no reason given"
}

const (
	messagesMost = 3   // of a failed test
	messageMost  = 300 // bytes of one
)

// messages returns the last lines that a failed test logged, each without what follows
// on further lines: the reason of the failure is among them.
func messages(output []string) []string {
	var found []string
	for _, line := range output {
		text := strings.TrimSpace(line)
		place, rest, is := strings.Cut(text, ": ")
		if !is || !strings.Contains(place, ".go:") || strings.ContainsAny(place, " {") || rest == "" {
			continue
		}
		found = append(found, text[:min(len(text), messageMost)])
	}
	return found[max(0, len(found)-messagesMost):]
}
