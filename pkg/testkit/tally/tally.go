// Package tally notes which servers the tests of a run have used, so that the run can print
// it at its end. It is for tests only; without MUSTER_TEST_TALLY it notes nothing.
package tally

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
)

// EnvFile is the environment variable that names the file of notes, to which the tests of
// all packages append.
const EnvFile = "MUSTER_TEST_TALLY"

// Kind is what a server serves.
type Kind string

// The kinds.
const (
	Postgres Kind = "postgres"
	NATS     Kind = "nats"
)

// Place is where a server runs.
type Place string

// The places.
const (
	Shared Place = "shared" // that which the run has for all tests
	Own    Place = "own"    // a process that the test itself started on this machine
)

// Note is one server of one test, or of a package's tests.
type Note struct {
	Kind  Kind
	Place Place
	Dir   string // of the package whose tests use it
}

// Add appends a note for the package whose tests this process runs: go test runs them in
// the package's directory.
func Add(kind Kind, place Place) error {
	path := os.Getenv(EnvFile)
	if path == "" {
		return nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("note a server of the tests: %w", err)
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("note a server of the tests: %w", err)
	}
	defer func() { _ = file.Close() }()
	// One write, which appends as a whole beside those of other processes.
	_, err = fmt.Fprintf(file, "%s\t%s\t%s\n", kind, place, dir)
	return err
}

// Read returns all notes.
func Read(r io.Reader) ([]Note, error) {
	var notes []Note
	lines := bufio.NewScanner(r) // refuses lines of more than 64 KiB
	for lines.Scan() {
		parts := strings.Split(lines.Text(), "\t")
		if len(parts) != 3 {
			return nil, fmt.Errorf("line %d of the tally is %q; want kind, place and directory", len(notes)+1, lines.Text())
		}
		notes = append(notes, Note{Kind(parts[0]), Place(parts[1]), parts[2]})
	}
	return notes, lines.Err()
}
