// Package submissions reads what was submitted to a site, and how long it ran: a list in
// Muster's own format, the pods of Alibaba's trace of GPU machines, or a log in the Standard
// Workload Format. Package simulation plays what it returns.
//
// The formats are described in docs/simulation.md. The package is pure, and bounds what it
// reads.
package submissions

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/whatif/simulation"
	"muster.dev/muster/pkg/whatif/swf"
)

// Options is what a file leaves open.
type Options struct {
	// Queue of submissions that name none.
	Queue string
	// Pod is what the pod of a processor requests, in a log that counts processors.
	Pod resource.List
	// KnownRunTimes: jobs of a log declare the time that they run.
	KnownRunTimes bool
}

const (
	// most bounds the submissions of a file.
	most = 1_000_000
	// longestLine bounds what is read as one line, in bytes.
	longestLine = 64 << 10
	// mostFaults bounds the reported faults of a file; the others are likely the same.
	mostFaults = 10
	// peeked is how much of a file decides which format it has.
	peeked = 4096
)

// File is what was submitted.
type File struct {
	// Log is nil where the file itself has what its pods request.
	Log  *swf.Log
	jobs []simulation.Job
	of   Options
}

// Read reads a file of any of the formats; its first line decides which. The error is a
// fault.List with the lines.
func Read(r io.Reader, o Options) (File, error) {
	source := bufio.NewReaderSize(r, peeked)
	begin, err := source.Peek(peeked)
	if err != nil && !errors.Is(err, io.EOF) {
		return File{}, fault.List{{Text: err.Error()}}
	}
	first, _, _ := bytes.Cut(bytes.TrimLeft(begin, "\ufeff \t\r\n"), []byte("\n"))
	read := File{of: o}
	switch {
	case bytes.HasPrefix(first, []byte("{")), bytes.HasPrefix(first, []byte("#")):
		read.jobs, err = readEvents(source, o)
	case strings.TrimSpace(string(first)) == strings.Join(openbColumns(), ","):
		read.jobs, err = readOpenB(source, o)
	default:
		var log swf.Log
		log, err = swf.Read(source)
		read.Log = &log
	}
	if err == nil && read.Log == nil && len(read.jobs) == 0 {
		err = fault.List{{Text: "there are no submissions; want a line for each"}}
	}
	return read, err
}

// Of returns a log as if it had been read.
func Of(log swf.Log, o Options) File { return File{Log: &log, of: o} }

// Jobs returns what can be simulated, in the order of submission, and counts the rest. Of a
// log, jobs of more processors than most are left out, if it is not zero.
func (f File) Jobs(most int) ([]simulation.Job, simulation.Left, error) {
	if f.Log == nil {
		return f.jobs, simulation.Left{}, nil
	}
	return simulation.OfLog(*f.Log, simulation.Shape{Pod: f.of.Pod, Queue: f.of.Queue, Most: most, KnownRunTimes: f.of.KnownRunTimes})
}

// lines calls add with each line that has content, and collects the faults.
func lines(r io.Reader, add func(number int, line string) error) error {
	var faults fault.List
	scanner := bufio.NewScanner(r)
	scanner.Buffer(nil, longestLine)
	number := 0
	for scanner.Scan() && len(faults) <= mostFaults {
		number++
		text := strings.TrimSpace(strings.TrimPrefix(scanner.Text(), "\ufeff"))
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		if number > most {
			return fault.List{{Line: number, Text: fmt.Sprintf("the file has more than %d lines; want at most that", most)}}
		}
		if err := add(number, text); err != nil {
			for _, f := range fault.Of(err) {
				f.Line = number
				faults = append(faults, f)
			}
		}
	}
	switch err := scanner.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		faults = append(faults, fault.Fault{Line: number + 1, Text: fmt.Sprintf("is longer than %d bytes; want one submission", longestLine)})
	case err != nil:
		faults = append(faults, fault.Fault{Line: number + 1, Text: err.Error()})
	}
	if len(faults) > mostFaults {
		faults = faults[:mostFaults+1]
		faults[mostFaults].Path, faults[mostFaults].Text = "", "is wrong, too; the rest has not been looked at"
	}
	return faults.Err()
}

// bySubmission orders jobs as they are submitted; those of one time by the file.
func bySubmission(jobs []simulation.Job) {
	slices.SortStableFunc(jobs, func(a, b simulation.Job) int { return cmp.Compare(a.Submitted.UnixNano(), b.Submitted.UnixNano()) })
}
