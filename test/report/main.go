// Command report reads the JSON of one or more runs of go test, from standard input or from
// the files that it is given, all at once. It shows them package by package as they come, and
// ends with the longest packages, what was skipped, the last messages of each test that
// failed, and how many tests passed, failed and were skipped.
//
// It is not a test runner. Its exit code is 0 only if tests ran and none failed. With
// -again FILE it writes there which tests a runner may run again, a line each. As the program of
// go test -exec, with -spend, it runs the tests of a package and reports their processor time.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// heartbeat is how often a silent run says what it is doing.
const heartbeat = 30 * time.Second

func main() {
	again := flag.String("again", "", "the `file` for failed tests that may be run again")
	spends := flag.Bool("spend", false, "run the command in the arguments, which are tests, and print its processor time")
	flag.Parse()
	if *spends {
		code, err := spend(flag.Args(), os.Stdout)
		if err != nil {
			fmt.Fprintln(os.Stderr, "report:", err)
			code = max(code, 1)
		}
		os.Exit(code)
	}
	tally := newTally(os.Stdout, time.Now())
	inputs, err := open(flag.Args())
	if err == nil {
		err = follow(inputs, tally)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
	good := tally.close(time.Now())
	if *again != "" {
		if err := os.WriteFile(*again, []byte(strings.Join(tally.runAgain(), "")), 0o600); err != nil {
			fmt.Fprintln(os.Stderr, "report:", err)
			os.Exit(1)
		}
	}
	if !good {
		os.Exit(1)
	}
}

// open opens the files, or standard input when there are none.
func open(paths []string) ([]io.Reader, error) {
	if len(paths) == 0 {
		return []io.Reader{os.Stdin}, nil
	}
	var inputs []io.Reader
	for _, path := range paths {
		file, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("read test output: %w", err)
		}
		inputs = append(inputs, file) // it is read to its end, which is that of the process
	}
	return inputs, nil
}

// follow hands every line of the inputs to the tally, and lets it speak in long silences.
func follow(inputs []io.Reader, tally *tally) error {
	lines, failed := make(chan []byte), make(chan error, len(inputs))
	var reading sync.WaitGroup
	for _, input := range inputs {
		reading.Go(func() {
			if err := read(input, lines); err != nil {
				failed <- err
			}
		})
	}
	go func() {
		reading.Wait()
		close(lines)
	}()
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	for {
		select {
		case line, open := <-lines:
			if !open {
				select {
				case err := <-failed:
					return err
				default:
					return nil
				}
			}
			tally.line(line)
		case now := <-ticker.C:
			tally.tick(now)
		}
	}
}

// read sends every line of the input.
func read(input io.Reader, lines chan<- []byte) error {
	reader := bufio.NewReader(input)
	for {
		line, err := reader.ReadBytes('\n')
		if len(line) > 0 {
			lines <- line
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read test output: %w", err)
		}
	}
}
