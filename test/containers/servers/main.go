// Command servers runs another command, such as all tests, with Postgres and NATS in
// containers, and says at its end which tests have used them:
//
//	servers -nats-server bin/nats-server -- go test ./...
//
// Postgres is one container with a database for each test. NATS is one container too, in
// which each test has a server of its own, because a container for each would cost more
// than the test: the first program of the container is this one, as the keeper, which
// starts nats-server there whenever this program is called under the name nats-server.
// The command finds them by MUSTER_TEST_DATABASE_URL and MUSTER_NATS_SERVER.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// keeperName is the argument that makes this program the keeper.
const keeperName = "keeper"

func main() {
	switch {
	case filepath.Base(os.Args[0]) == natsName:
		os.Exit(ask(os.Args[1:]))
	case len(os.Args) == 3 && os.Args[1] == keeperName:
		if err := keep(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, "keeper:", err)
			os.Exit(1)
		}
	default:
		code, err := serve(context.Background(), os.Args[1:])
		if err != nil {
			fmt.Fprintln(os.Stderr, "servers:", err)
			code = max(code, 1)
		}
		os.Exit(code)
	}
}

// options are the arguments of the program.
type options struct {
	natsServer string // program that runs where the container cannot
	memory     bool
	command    []string
}

func parse(arguments []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("servers", flag.ContinueOnError)
	flags.StringVar(&o.natsServer, "nats-server", "", "nats-server of this machine, for servers whose files the container does not see")
	flags.BoolVar(&o.memory, "memory", false, "keep the databases in memory")
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	o.command = flags.Args()
	switch {
	case len(o.command) == 0:
		return o, fmt.Errorf("no command; want one after --, such as: servers -nats-server bin/nats-server -- go test ./pkg/bus")
	case o.natsServer == "":
		return o, fmt.Errorf("-nats-server names no program; want that of this machine, such as bin/nats-server")
	}
	var err error
	o.natsServer, err = filepath.Abs(o.natsServer)
	return o, err
}
