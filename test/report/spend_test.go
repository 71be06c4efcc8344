package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

// The tests of a package end as they did, their output passes, and behind it is their processor time
// with that of what they have started.
func TestSpend(t *testing.T) {
	t.Setenv("GOTMPDIR", "of the compiler")
	const busy = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; "
	for name, test := range map[string]struct {
		script, prints string
		code           int
		killed         bool
	}{
		"pass":               {script: "echo good", prints: "good\n"},
		"fail":               {script: "echo bad; exit 3", prints: "bad\n", code: 3},
		"killed":             {script: "kill -9 $$", killed: true},
		"not the compiler's": {script: `echo "[$GOTMPDIR]"`, prints: "[]\n"},
		"of a child":         {script: "sh -c '" + busy + "'; true"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			code, err := spend([]string{"sh", "-c", test.script}, &out)
			if code != test.code || (err != nil) != test.killed {
				t.Errorf("exit code %d, %v; want %d, killed: %t", code, err, test.code, test.killed)
			}
			line, is := strings.CutPrefix(out.String(), test.prints)
			spent, counted := spentIn(line)
			if !is || !counted || strings.Contains(test.script, busy) && spent == 0 {
				t.Errorf("output %q, want %q and the processor time", out.String(), test.prints)
			}
		})
	}
	if _, err := spend([]string{"/nowhere/at/all"}, io.Discard); err == nil {
		t.Error("a program that is not there has run")
	}
}

// A report names the packages that spent the most, and what all spent; the line is no message of a test.
func TestSpentTimeIsReported(t *testing.T) {
	t.Parallel()
	var lines strings.Builder
	for name, spent := range map[string]string{"p": "12.5s", "q": "100.0s", "r": "0.4s"} {
		fmt.Fprintf(&lines, `{"Action":"run","Package":%[1]q,"Test":"TestA"}
{"Action":"pass","Package":%[1]q,"Test":"TestA"}
{"Action":"output","Package":%[1]q,"Output":"PASS\n"}
{"Action":"output","Package":%[1]q,"Output":"processor time: %[2]s\n"}
{"Action":"pass","Package":%[1]q,"Elapsed":1}
`, name, spent)
	}
	var out bytes.Buffer
	tally := newTally(&out, time.Now())
	if err := follow([]io.Reader{strings.NewReader(lines.String())}, tally); err != nil {
		t.Fatal(err)
	}
	if !tally.close(time.Now()) {
		t.Error("the run is not good")
	}
	const want = "most processor time  q  100.0s\nmost processor time  p  12.5s\nprocessor time of all tests: 113s"
	if !strings.Contains(out.String(), want) {
		t.Errorf("the report is\n%swant in it\n%s", &out, want)
	}
}
