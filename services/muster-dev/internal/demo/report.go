package demo

import (
	"fmt"
	"io"
)

// report writes the story and counts its checks.
type report struct {
	w                       io.Writer
	steps                   int
	passed, failed, skipped int
}

func (r *report) step(format string, args ...any) {
	r.steps++
	fmt.Fprintf(r.w, "\n%d. %s\n", r.steps, fmt.Sprintf(format, args...))
}

func (r *report) note(format string, args ...any) {
	fmt.Fprintf(r.w, "   %s\n", fmt.Sprintf(format, args...))
}

// check counts a check and prints its result.
func (r *report) check(ok bool, format string, args ...any) bool {
	mark := "ok  "
	if ok {
		r.passed++
	} else {
		r.failed++
		mark = "FAIL"
	}
	fmt.Fprintf(r.w, "   %s  %s\n", mark, fmt.Sprintf(format, args...))
	return ok
}

// skip counts checks that cannot be made here, and reports why.
func (r *report) skip(checks int, format string, args ...any) {
	r.skipped += checks
	fmt.Fprintf(r.w, "   skip  %s\n", fmt.Sprintf(format, args...))
}

func (r *report) summary() string {
	return fmt.Sprintf("%d checks passed, %d failed, %d skipped", r.passed, r.failed, r.skipped)
}
