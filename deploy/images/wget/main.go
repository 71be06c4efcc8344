// Command wget is the health check of Muster's image of nats-server, which has no shell. It
// takes only the command line in docker-compose.yaml, which the wget of the official image
// (nats:VERSION-alpine) takes as well, so that one check works for both.
//
//	wget -q --spider URL
//
// It exits with 0 if the URL answers 200. Otherwise it prints the reason, which docker
// inspect shows, and exits with 1.
package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"time"
)

// timeout is below that of the health check, so that the reason is printed.
const timeout = 2 * time.Second

// shown bounds the printed part of an answer.
const shown = 1 << 10

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "wget:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) != 3 || !slices.Equal(arguments[:2], []string{"-q", "--spider"}) {
		return fmt.Errorf("arguments %q: want -q --spider URL, this is a health check only", arguments)
	}
	return ask(arguments[2])
}

func ask(url string) error {
	client := http.Client{Timeout: timeout}
	response, err := client.Get(url)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, shown))
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return fmt.Errorf("read the answer of %s: %w", url, err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s: %s", url, response.Status, body)
	}
	return nil
}
