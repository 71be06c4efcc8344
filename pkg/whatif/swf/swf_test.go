package swf_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/whatif/swf"
)

const small = `; Version: 2.2
; MaxNodes: 100
;
; a remark without a key

    1        0 964980  97225   56     -1    -1   56 210000    -1  1   1   1  -1 -1 -1 -1 -1
    2   327952 291900   9382   80   12.5    -1   -1     -1    -1  0   2   2  -1 -1 -1 -1 -1
`

func want() swf.Log {
	unknown := func(j swf.Job) swf.Job {
		j.Memory, j.AskMemory = -1, -1
		j.Executable, j.Queue, j.Partition, j.PrecedingJob, j.SecondsAfterIt = -1, -1, -1, -1, -1
		return j
	}
	return swf.Log{
		Headers: []swf.Header{{Key: "Version", Value: "2.2"}, {Key: "MaxNodes", Value: "100"}},
		Jobs: []swf.Job{
			unknown(swf.Job{Line: 6, Number: 1, Wait: 964980, Run: 97225, Processors: 56, CPUTime: -1,
				AskProcessors: 56, AskTime: 210000, Status: 1, User: 1, Group: 1}),
			unknown(swf.Job{Line: 7, Number: 2, Submit: 327952, Wait: 291900, Run: 9382, Processors: 80, CPUTime: 12.5,
				AskProcessors: -1, AskTime: -1, User: 2, Group: 2}),
		},
	}
}

func TestReadsPlainAndCompressed(t *testing.T) {
	t.Parallel()
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	if _, err := zip.Write([]byte(small)); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	for name, source := range map[string]string{"plain": small, "gzip": packed.String()} {
		t.Run(name, func(t *testing.T) {
			log, err := swf.Read(strings.NewReader(source))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if diff := cmp.Diff(want(), log); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
			if nodes, known := log.Number("maxnodes"); !known || nodes != 100 {
				t.Errorf("%s: MaxNodes is %d, %t", name, nodes, known)
			}
		})
	}
}

const good = "1 0 0 10 1 -1 -1 -1 -1 -1 1 1 1 -1 -1 -1 -1 -1"

// zipped is a text, compressed, of which that number of bytes is left.
func zipped(text string, left int) string {
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	_, _ = zip.Write([]byte(text)) // into memory
	_ = zip.Close()
	return packed.String()[:left]
}

func faults(n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "line %d: has 1 fields, want 18: \"1\"\n", i+1)
	}
	return text.String()
}

func TestFaultsNameTheLineAndTheField(t *testing.T) {
	t.Parallel()
	const tail = " -1 -1 -1 -1 1 1 1 -1 -1 -1 -1 -1"
	if _, err := swf.Read(strings.NewReader(zipped(strings.Repeat(good+"\n", 5000), 200))); err == nil ||
		!strings.HasSuffix(err.Error(), ": the gzip file ends here, in its middle: it is cut off") {
		t.Errorf("error of a truncated gzip file: %v", err)
	}
	for name, c := range map[string]struct{ log, want string }{
		"fields":         {"; x\n1 2 3\n", `line 2: has 3 fields, want 18: "1 2 3"`},
		"word":           {"1 0 0 ten 1 -1" + tail + "\n", `line 1: field 4, run time: "ten": want a whole number, or -1 when it is not known`},
		"huge":           {"1 0 0 1e300 1 -1" + tail + "\n", `line 1: field 4, run time: "1e300": want a whole number, or -1 when it is not known`},
		"fraction":       {"1 0 0 1 1 x" + tail + "\n", `line 1: field 6, average CPU time used: "x": want a number, or -1 when it is not known`},
		"submission":     {"\n1 -1 0 1 1 -1" + tail + "\n", `line 2: field 2, submit time: -1: want seconds since the start of the log, 0 to 3153600000 (100 years)`},
		"far submission": {"1 9223372036854775807 0 1 1 -1" + tail + "\n", `line 1: field 2, submit time: 9223372036854775807: want seconds since the start of the log, 0 to 3153600000 (100 years)`},
		"negative":       {"1 0 0 -7 1 -1" + tail + "\n", `line 1: field 4, run time: -7 is negative; want zero or more, or -1 when it is not known`},
		"long run":       {"1 0 0 9000000000000000000 1 -1" + tail + "\n", `line 1: field 4, run time: 9000000000000000000: want at most 315360000 seconds (10 years)`},
		"long request":   {"1 0 0 1 1 -1 -1 1 315360001 -1 1 1 1 -1 -1 -1 -1 -1\n", `line 1: field 9, requested time: 315360001: want at most 315360000 seconds (10 years)`},
		"long line":      {"; x\n" + strings.Repeat("9", 1<<20), "line 2: is longer than 65536 bytes: this is no log in the Standard Workload Format"},
		"not gzip":       {"\x1f\x8bnothing at all", "begins like a gzip file, but is none: gzip: invalid header"},
		"several":        {"1 2 3\n" + good + "\n4 5\n", "line 1: has 3 fields, want 18: \"1 2 3\"\nline 3: has 2 fields, want 18: \"4 5\""},
		"all":            {strings.Repeat("1\n", 100), strings.TrimSuffix(faults(10), "\n") + "\nline 11: is wrong, too; the rest has not been looked at"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := swf.Read(strings.NewReader(c.log))
			if err == nil || err.Error() != c.want {
				t.Errorf("%s: error is\n%v\nwant\n%s", name, err, c.want)
			}
		})
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(small))
	f.Add([]byte("; MaxNodes:\n1 0 0 1e3 1 -1 -1 -1 -1 -1 1 1 1 -1 -1 -1 -1 -1"))
	f.Add([]byte("\x1f\x8b\x08"))
	f.Fuzz(func(t *testing.T, data []byte) {
		log, err := swf.Read(bytes.NewReader(data))
		if err != nil && log.Jobs != nil {
			t.Errorf("jobs beside the error %v", err)
		}
		for _, job := range log.Jobs {
			if job.Submit < 0 || job.Line < 1 {
				t.Errorf("job %+v", job)
			}
		}
	})
}
