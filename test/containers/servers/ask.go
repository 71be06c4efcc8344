package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"

	"muster.dev/muster/pkg/testkit/tally"
)

// The variables that tell this program, under the name nats-server, where to ask and what
// to run here instead.
const (
	envSocket = "MUSTER_TEST_NATS_KEEPER"
	envHere   = "MUSTER_TEST_NATS_SERVER_HERE"
)

// ask runs nats-server in the container until it ends, and returns its code. A server whose
// files the container does not see, such as those on a file system that a test has
// mounted, becomes this process instead.
func ask(arguments []string) int {
	code, unseen, err := askKeeper(os.Getenv(envSocket), arguments)
	if err == nil && unseen == "" {
		return code
	}
	if err == nil {
		if err = tally.Add(tally.NATS, tally.Own); err == nil {
			here := os.Getenv(envHere)
			err = syscall.Exec(here, append([]string{natsName}, arguments...), os.Environ())
			err = fmt.Errorf("run %q, because the container does not see %s: %w", here, unseen, err)
		}
	}
	fmt.Fprintln(os.Stderr, "nats-server:", err)
	return 1
}

// askKeeper runs the server by the keeper at the socket, and passes it this process' wish
// to end. It returns the path, if any, that the container does not see.
func askKeeper(socket string, arguments []string) (code int, unseen string, err error) {
	seen, err := paths(arguments)
	if err != nil {
		return 0, "", err
	}
	ends := make(chan os.Signal, 1)
	signal.Notify(ends, syscall.SIGINT, syscall.SIGTERM)
	defer func() { signal.Stop(ends); close(ends) }()
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return 0, "", fmt.Errorf("ask the container of NATS: %w", err)
	}
	defer func() { _ = conn.Close() }()
	if err := json.NewEncoder(conn).Encode(request{Arguments: arguments, Paths: seen}); err != nil {
		return 0, "", fmt.Errorf("ask the container of NATS: %w", err)
	}
	go func() {
		for range ends {
			_, _ = conn.Write([]byte{'\n'}) // the server may have ended
		}
	}()
	return await(bufio.NewReader(conn))
}

// await reads the answers until the server has ended.
func await(from io.Reader) (code int, unseen string, err error) {
	answers := json.NewDecoder(io.LimitReader(from, mostRequest))
	for {
		var a answer
		if err := answers.Decode(&a); err != nil {
			return 0, "", fmt.Errorf("the container of NATS is gone: %w", err)
		}
		switch {
		case a.Failure != "":
			return 0, "", fmt.Errorf("nats-server does not start in its container: %s", a.Failure)
		case a.Unseen != "":
			return 0, a.Unseen, nil
		case a.Ended:
			return a.Code, "", nil
		}
		if err := tally.Add(tally.NATS, tally.Shared); err != nil {
			return 0, "", err
		}
	}
}
