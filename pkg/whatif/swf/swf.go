// Package swf reads job logs in the Standard Workload Format, version 2.2, of
// the Parallel Workloads Archive: one job per line, eighteen numbers each, -1
// for what is not known, and header comments that begin with a semicolon.
//
// It is for reading only; what a job of a log means to Muster is package
// simulation's. The package is pure.
package swf

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"muster.dev/muster/pkg/spec/fault"
)

// Unknown is how the format marks a number that is not known.
const Unknown = -1

// Job is one line of a log. Times are whole seconds, Submit since the start of
// the log; every field but Number and Submit may be Unknown.
type Job struct {
	Line           int // in the file, from 1
	Number         int64
	Submit         int64
	Wait           int64
	Run            int64
	Processors     int64   // that it got
	CPUTime        float64 // average used per processor
	Memory         float64 // average used per processor, in kilobytes
	AskProcessors  int64
	AskTime        int64
	AskMemory      float64 // per processor, in kilobytes
	Status         int64   // 1 completed, 0 failed, 5 cancelled
	User, Group    int64
	Executable     int64
	Queue          int64
	Partition      int64
	PrecedingJob   int64
	SecondsAfterIt int64 // from the end of the preceding job to this submission
}

// Header is one "Key: Value" comment.
type Header struct{ Key, Value string }

// Log is a whole file. Jobs are in the order of the file.
type Log struct {
	Headers []Header
	Jobs    []Job
}

// Number returns the header of that name as a whole number, such as MaxNodes.
func (l Log) Number(key string) (value int64, known bool) {
	for _, h := range l.Headers {
		if strings.EqualFold(h.Key, key) {
			word, _, _ := strings.Cut(strings.TrimSpace(h.Value), " ")
			value, err := strconv.ParseInt(word, 10, 64)
			return value, err == nil
		}
	}
	return 0, false
}

// longestLine bounds what is read as one line, in bytes.
const longestLine = 64 << 10

// mostFaults bounds the reported faults of a log; the others are likely the same.
const mostFaults = 10

// Read reads a log, compressed with gzip or not. The error is a fault.List that
// names the lines, the fields and their values.
func Read(r io.Reader) (Log, error) {
	source := bufio.NewReader(r)
	if magic, err := source.Peek(2); err == nil && bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		unzipped, err := gzip.NewReader(source)
		if err != nil {
			return Log{}, fault.List{{Text: "begins like a gzip file, but is none: " + err.Error()}}
		}
		defer func() { _ = unzipped.Close() }()
		source = bufio.NewReader(unzipped)
	}
	var log Log
	var faults fault.List
	lines := bufio.NewScanner(source)
	lines.Buffer(nil, longestLine)
	number := 0
	for lines.Scan() && len(faults) <= mostFaults {
		number++
		if err := log.add(number, strings.TrimSpace(lines.Text())); err != nil {
			faults = append(faults, fault.Fault{Line: number, Text: err.Error()})
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, io.ErrUnexpectedEOF): // and what seemed wrong with the last line comes of it
		return Log{}, fault.List{{Line: number, Text: "the gzip file ends here, in its middle: it is cut off"}}
	case errors.Is(err, bufio.ErrTooLong):
		faults = append(faults, fault.Fault{Line: number + 1, Text: fmt.Sprintf("is longer than %d bytes: this is no log in the Standard Workload Format", longestLine)})
	case err != nil:
		return Log{}, fault.List{{Line: number + 1, Text: err.Error()}}
	}
	if len(faults) > mostFaults {
		faults[mostFaults].Text = "is wrong, too; the rest has not been looked at"
	}
	if len(faults) > 0 {
		return Log{}, faults
	}
	return log, nil
}

// add takes in a line.
func (l *Log) add(number int, text string) error {
	switch {
	case text == "":
	case strings.HasPrefix(text, ";"):
		if key, value, is := strings.Cut(strings.TrimLeft(text, "; \t"), ":"); is && key != "" {
			l.Headers = append(l.Headers, Header{strings.TrimSpace(key), strings.TrimSpace(value)})
		}
	default:
		job, err := readJob(text)
		if err != nil {
			return err
		}
		job.Line = number
		l.Jobs = append(l.Jobs, job)
	}
	return nil
}

// columns names the fields in the order of the format.
var columns = [...]string{
	"job number", "submit time", "wait time", "run time", "number of allocated processors", "average CPU time used",
	"used memory", "requested number of processors", "requested time", "requested memory", "status", "user id",
	"group id", "executable number", "queue number", "partition number", "preceding job number", "think time",
}

func readJob(line string) (Job, error) {
	words := strings.Fields(line)
	if len(words) != len(columns) {
		return Job{}, fmt.Errorf("has %d fields, want %d: %q", len(words), len(columns), fault.ClipTo(line, shown))
	}
	var j Job
	whole := []*int64{
		0: &j.Number, 1: &j.Submit, 2: &j.Wait, 3: &j.Run, 4: &j.Processors, 7: &j.AskProcessors, 8: &j.AskTime,
		10: &j.Status, 11: &j.User, 12: &j.Group, 13: &j.Executable, 14: &j.Queue, 15: &j.Partition,
		16: &j.PrecedingJob, 17: &j.SecondsAfterIt,
	}
	for i, into := range whole {
		if into == nil {
			continue
		}
		value, err := wholeNumber(words[i])
		if err != nil {
			return Job{}, fmt.Errorf("field %d, %s: %w", i+1, columns[i], err)
		}
		*into = value
	}
	for _, fraction := range []struct {
		column int
		into   *float64
	}{{5, &j.CPUTime}, {6, &j.Memory}, {9, &j.AskMemory}} {
		value, err := strconv.ParseFloat(words[fraction.column], 64)
		if err != nil || math.IsNaN(value) || math.IsInf(value, 0) {
			return Job{}, fmt.Errorf("field %d, %s: %q: want a number, or -1 when it is not known",
				fraction.column+1, columns[fraction.column], fault.ClipTo(words[fraction.column], shown))
		}
		*fraction.into = value
	}
	return j, check(&j)
}

// longest bounds the times of a log, so that sums with them stay moments: ten years
// for a job, a hundred for a log.
const longest, longestLog = 10 * 365 * 24 * 3600, 100 * 365 * 24 * 3600

// check refuses what cannot be.
func check(j *Job) error {
	if j.Submit < 0 || j.Submit > longestLog {
		return fmt.Errorf("field 2, %s: %d: want seconds since the start of the log, 0 to %d (100 years)", columns[1], j.Submit, longestLog)
	}
	for _, field := range []struct {
		column int
		value  int64
		most   int64
		means  string
	}{
		{3, j.Run, longest, " seconds (10 years)"}, {4, j.Processors, math.MaxInt64, ""},
		{7, j.AskProcessors, math.MaxInt64, ""}, {8, j.AskTime, longest, " seconds (10 years)"},
	} {
		switch {
		case field.value < Unknown:
			return fmt.Errorf("field %d, %s: %d is negative; want zero or more, or -1 when it is not known", field.column+1, columns[field.column], field.value)
		case field.value > field.most:
			return fmt.Errorf("field %d, %s: %d: want at most %d%s", field.column+1, columns[field.column], field.value, field.most, field.means)
		}
	}
	return nil
}

// shown bounds how much of a line or word an error repeats, in bytes.
const shown = 60

// wholeNumber reads what should be a whole number; some logs write it with a
// fraction of zeros or round a time to hundredths, which is cut.
func wholeNumber(word string) (int64, error) {
	if value, err := strconv.ParseInt(word, 10, 64); err == nil {
		return value, nil
	}
	value, err := strconv.ParseFloat(word, 64)
	if err != nil || math.IsNaN(value) || math.Abs(value) > 1<<53 {
		return 0, fmt.Errorf("%q: want a whole number, or -1 when it is not known", fault.ClipTo(word, shown))
	}
	return int64(value), nil
}
