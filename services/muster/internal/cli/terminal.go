package cli

import (
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"muster.dev/muster/pkg/spec/workload"
)

// terminal is what a person looks at. Text that is written to it must be safe: it obeys
// escape sequences.
type terminal struct {
	io.Writer
	// size returns its columns and rows.
	size func() (columns, rows int)
	// plain: the person wants no colour (https://no-color.org).
	plain bool
}

// terminalOf returns the terminal that a command writes to, nil for a file or a pipe.
func terminalOf(w io.Writer) *terminal {
	if behind, is := w.(interface{ Unwrap() io.Writer }); is {
		w = behind.Unwrap()
	}
	file, isFile := w.(*os.File)
	if !isFile || !term.IsTerminal(int(file.Fd())) {
		return nil
	}
	return &terminal{Writer: file, plain: os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb", size: func() (columns, rows int) {
		columns, rows, err := term.GetSize(int(file.Fd()))
		if err != nil || columns < 1 || rows < 1 {
			return 80, 24
		}
		return columns, rows
	}}
}

// Escape sequences of ECMA-48.
const (
	clearScreen  = "\x1b[2J"
	home         = "\x1b[H"
	clearLineEnd = "\x1b[K"
	clearBelow   = "\x1b[J"
	noColor      = "\x1b[0m"
)

// colorOf is the colour of a phase.
func colorOf(phase workload.Phase) string {
	switch phase {
	case workload.Queued:
		return "\x1b[33m" // yellow
	case workload.Admitted, workload.Dispatched:
		return "\x1b[36m" // cyan
	case workload.Running, workload.Succeeded:
		return "\x1b[32m" // green
	case workload.Evicting, workload.Cancelling:
		return "\x1b[35m" // magenta
	case workload.Failed:
		return "\x1b[31m" // red
	}
	return ""
}

// colored colours the phases in a table, which has a column PHASE.
func colored(table string) string {
	lines := strings.Split(table, "\n")
	before, _, found := strings.Cut(lines[0], "PHASE")
	if !found {
		return table
	}
	column := len([]rune(before))
	for i, line := range lines[1:] {
		runes := []rune(line)
		if len(runes) <= column {
			continue
		}
		phase, _, _ := strings.Cut(string(runes[column:]), " ")
		if color := colorOf(workload.Phase(phase)); color != "" {
			end := column + len([]rune(phase))
			lines[i+1] = string(runes[:column]) + color + phase + noColor + string(runes[end:])
		}
	}
	return strings.Join(lines, "\n")
}
