// Package fault is what is wrong in a file that people write: where, which value,
// and what would be right. Checks of values name the path of each fault; who has
// read the file adds its name and the line, so that all faults are reported at once
// and each can be found.
//
// It is not for what goes wrong while a service works: such errors wrap each
// other, and are reported one at a time. The package is pure.
package fault

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Fault is one thing that is wrong.
type Fault struct {
	File string
	Line int // from 1; zero when it is not known
	// Path in the file, such as queues[0].life.onPodLoss.
	Path string
	// Text is the value and what would be right.
	Text string
}

// Error returns all of it on one line, the place first: "file:line: path: text".
func (f Fault) Error() string {
	var place string
	switch {
	case f.File != "" && f.Line > 0:
		place = fmt.Sprintf("%s:%d: ", f.File, f.Line)
	case f.File != "":
		place = f.File + ": "
	case f.Line > 0:
		place = fmt.Sprintf("line %d: ", f.Line)
	}
	if f.Path != "" {
		place += f.Path + ": "
	}
	lines := strings.Split(f.Text, "\n") // of several errors
	for i, line := range lines {
		lines[i] = Printable(line)
	}
	return Printable(place) + strings.Join(lines, "\n")
}

// List is faults as one error, each on a line.
type List []Fault

// Error implements error.
func (l List) Error() string {
	lines := make([]string, len(l))
	for i, f := range l {
		lines[i] = f.Error()
	}
	return strings.Join(lines, "\n")
}

// Err is the list as an error; nil when it is empty.
func (l List) Err() error {
	if len(l) == 0 {
		return nil
	}
	return l
}

// Add adds a fault at a path.
func (l *List) Add(path, format string, args ...any) {
	*l = append(*l, Fault{Path: path, Text: fmt.Sprintf(format, args...)})
}

// Under adds the faults that an error has of the value at a path: a List with each of its
// paths below it, any other error as one fault. Nil adds nothing.
func (l *List) Under(path string, err error) {
	if err == nil {
		return
	}
	for _, f := range Of(err) {
		f.Path = Below(path, f.Path)
		*l = append(*l, f)
	}
}

// Of returns the faults that an error consists of.
func Of(err error) List {
	var list List
	if errors.As(err, &list) {
		return list
	}
	var one Fault
	if errors.As(err, &one) {
		return List{one}
	}
	return List{{Text: err.Error()}}
}

// At is one fault at a path.
func At(path, format string, args ...any) Fault {
	return Fault{Path: path, Text: fmt.Sprintf(format, args...)}
}

// In returns the faults with the name of their file, in the order of the lines.
func (l List) In(file string) List {
	named := slices.Clone(l)
	for i := range named {
		named[i].File = file
	}
	slices.SortStableFunc(named, func(a, b Fault) int { return cmp.Compare(a.Line, b.Line) })
	return named
}

// Within reports whether the path of one of the faults is path, or below it.
func (l List) Within(path string) bool {
	return slices.ContainsFunc(l, func(f Fault) bool {
		rest, is := strings.CutPrefix(f.Path, path)
		return is && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// plain is a key that stands in a path as it is.
var plain = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

// Key is the path of a field, or of the value of a key, below a path.
func Key(path, key string) string {
	switch {
	case !plain.MatchString(key):
		return fmt.Sprintf("%s[%q]", path, key)
	case path == "":
		return key
	}
	return path + "." + key
}

// Index is the path of an element of the list at a path.
func Index(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

// Below is one path below another; either may be empty.
func Below(path, rest string) string {
	if path == "" || rest == "" || rest[0] == '[' {
		return path + rest
	}
	return path + "." + rest
}
