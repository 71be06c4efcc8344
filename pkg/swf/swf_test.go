package swf_test

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/swf"
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
	}
}

func TestFaultsNameTheLineAndTheField(t *testing.T) {
	t.Parallel()
	const tail = " -1 -1 -1 -1 1 1 1 -1 -1 -1 -1 -1"
	for name, c := range map[string]struct{ log, want string }{
		"fields":     {"; x\n1 2 3\n", `line 2: has 3 fields, want 18: "1 2 3"`},
		"word":       {"1 0 0 ten 1 -1" + tail + "\n", `line 1: field 4, run time: "ten": want a whole number, or -1 when it is not known`},
		"huge":       {"1 0 0 1e300 1 -1" + tail + "\n", `line 1: field 4, run time: "1e300": want a whole number, or -1 when it is not known`},
		"fraction":   {"1 0 0 1 1 x" + tail + "\n", `line 1: field 6, average CPU time used: "x": want a number, or -1 when it is not known`},
		"submission": {"\n1 -1 0 1 1 -1" + tail + "\n", `line 2: field 2, submit time: -1: want seconds since the start of the log`},
		"long line":  {"; x\n" + strings.Repeat("9", 1<<20), "line 2: is longer than 65536 bytes"},
		"not gzip":   {"\x1f\x8bnothing", "begins like a gzip file, but is none"},
	} {
		_, err := swf.Read(strings.NewReader(c.log))
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: error is %v, want %s", name, err, c.want)
		}
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
