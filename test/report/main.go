// Command report reads the JSON of one or more runs of go test from standard
// input, shows them package by package as they come, and ends with what was
// skipped, the last messages of each test that failed, and how many tests passed, failed
// and were skipped.
//
// It is not a test runner. Its exit code is 0 only if tests ran and none failed. With
// -again FILE it writes there which tests a runner may run again, a line each.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// heartbeat is how often a silent run says what it is doing.
const heartbeat = 30 * time.Second

func main() {
	again := flag.String("again", "", "the `file` for failed tests that may be run again")
	flag.Parse()
	tally := newTally(os.Stdout, time.Now())
	if err := follow(os.Stdin, tally); err != nil {
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

// follow hands every line to the tally, and lets it speak in long silences.
func follow(input io.Reader, tally *tally) error {
	lines, failed := make(chan []byte), make(chan error, 1)
	go func() {
		defer close(lines)
		reader := bufio.NewReader(input)
		for {
			line, err := reader.ReadBytes('\n')
			if len(line) > 0 {
				lines <- line
			}
			if err != nil {
				if err != io.EOF {
					failed <- fmt.Errorf("read test output: %w", err)
				}
				return
			}
		}
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
