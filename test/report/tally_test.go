package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

func TestTally(t *testing.T) {
	t.Parallel()
	const good = `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p","Elapsed":1.5}
{"Action":"skip","Package":"empty"}
`
	const skipped = `{"Action":"run","Package":"q","Test":"TestS"}
{"Action":"output","Package":"q","Test":"TestS","Output":"    s_test.go:7: no engine: none\n"}
{"Action":"output","Package":"q","Test":"TestS","Output":"--- SKIP: TestS (0.00s)\n"}
{"Action":"skip","Package":"q","Test":"TestS"}
{"Action":"pass","Package":"q","Elapsed":0.1}
`
	cases := map[string]struct {
		input string
		ok    bool
		wants []string
	}{
		"passed": {
			input: good, ok: true,
			wants: []string{"ok    p  1.5s  1 tests", "1 passed, 0 failed, 0 skipped in 5s (1 packages)"},
		},
		"a skip tells its reason": {
			input: good + skipped, ok: true,
			wants: []string{"skipped  q.TestS: no engine: none", "1 passed, 0 failed, 1 skipped"},
		},
		"no test ran": {
			input: `{"Action":"pass","Package":"p"}`, ok: false,
			wants: []string{"0 passed, 0 failed, 0 skipped"},
		},
		"a failed test shows its output": {
			input: good + `{"Action":"output","Package":"r","Test":"TestF","Output":"    f_test.go:1: got 1, want 2\n"}
{"Action":"fail","Package":"r","Test":"TestF"}
{"Action":"fail","Package":"r"}`, ok: false,
			wants: []string{"--- r.TestF", "got 1, want 2", "FAIL  r", "failed   r.TestF: f_test.go:1: got 1, want 2\n1 passed, 1 failed"},
		},
		"a panic outside of tests is shown": {
			input: good + `{"Action":"output","Package":"r","Output":"panic: in TestMain\n"}
{"Action":"fail","Package":"r"}`, ok: false,
			wants: []string{"panic: in TestMain", "FAIL  r"},
		},
		"a package that does not compile fails the run": {
			input: good + `{"ImportPath":"r","Action":"build-output","Output":"r.go:3: undefined: x\n"}
{"ImportPath":"r","Action":"build-fail"}
{"Action":"fail","Package":"r","FailedBuild":"r"}`, ok: false,
			wants: []string{"undefined: x", "FAIL  r  does not compile"},
		},
		"what is not JSON is shown": {
			input: good + "go: cannot find module\n", ok: true,
			wants: []string{"go: cannot find module"},
		},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			began := time.Now()
			tally := newTally(&out, began)
			if err := follow([]io.Reader{strings.NewReader(test.input)}, tally); err != nil {
				t.Fatal(err)
			}
			if ok := tally.close(began.Add(5 * time.Second)); ok != test.ok {
				t.Errorf("good run: %v, want %v", ok, test.ok)
			}
			for _, want := range test.wants {
				if !strings.Contains(out.String(), want) {
					t.Errorf("output lacks %q:\n%s", want, out.String())
				}
			}
		})
	}
}

// What several runs write at once is one report, with the longest packages and tests at its end.
func TestSeveralRunsAreOneReport(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	tally := newTally(&out, time.Now())
	var inputs []io.Reader
	for i := range 7 {
		name := string(rune('a' + i))
		inputs = append(inputs, strings.NewReader(fmt.Sprintf(`{"Action":"run","Package":%[1]q,"Test":"TestA"}
{"Action":"pass","Package":%[1]q,"Test":"TestA/case","Elapsed":99}
{"Action":"pass","Package":%[1]q,"Test":"TestA","Elapsed":%[2]d}
{"Action":"pass","Package":%[1]q,"Elapsed":%[3]d}
`, name, 5*i, 10*i)))
	}
	if err := follow(inputs, tally); err != nil {
		t.Fatal(err)
	}
	if !tally.close(time.Now()) {
		t.Error("the run is not good")
	}
	const ends = "longest  g  60.0s\nlongest  f  50.0s\nlongest  e  40.0s\nlongest  d  30.0s\nlongest  c  20.0s\n" +
		"longest  g.TestA  30.0s\nlongest  f.TestA  25.0s\nlongest  e.TestA  20.0s\nlongest  d.TestA  15.0s\nlongest  c.TestA  10.0s\n14 passed, 0 failed, 0 skipped in 0s (7 packages)\n"
	if !strings.HasSuffix(out.String(), ends) {
		t.Errorf("the report is\n%swant it to end with\n%s", &out, ends)
	}
}

func TestRunAgain(t *testing.T) {
	t.Parallel()
	const failed = `{"Action":"fail","Package":"r","Test":"TestF/case"}
{"Action":"fail","Package":"r","Test":"TestF"}
{"Action":"fail","Package":"r"}
`
	cases := map[string]struct{ input, want string }{
		"a failed test, once for all of its cases": {failed, "r TestF\n"},
		"no failed test":  {`{"Action":"pass","Package":"p","Test":"TestA"}`, ""},
		"three":           {strings.NewReplacer("TestF", "TestG").Replace(failed) + failed + strings.ReplaceAll(failed, "TestF", "TestH"), "r TestG\nr TestF\nr TestH\n"},
		"thirteen":        {strings.Repeat(failed, 13), ""},
		"a data race":     {`{"Action":"output","Package":"r","Test":"TestF","Output":"WARNING: DATA RACE\n"}` + "\n" + failed, ""},
		"a panic":         {`{"Action":"output","Package":"r","Test":"TestF","Output":"panic: nil map\n"}` + "\n" + failed, ""},
		"a broken build":  {`{"ImportPath":"q","Action":"build-fail"}` + "\n" + failed, ""},
		"a package alone": {`{"Action":"fail","Package":"q"}` + "\n" + failed, ""},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tally := newTally(io.Discard, time.Now())
			if err := follow([]io.Reader{strings.NewReader(test.input)}, tally); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(tally.runAgain(), ""); got != test.want {
				t.Errorf("run again: %q, want %q", got, test.want)
			}
		})
	}
}
