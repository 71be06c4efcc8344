// Command muster is the client of Muster: it submits, shows, follows and cancels
// workloads, configures queues, and plays scenarios without a server. It runs no service
// (muster-dev does).
//
// Under the name kubectl-muster it is a plugin of kubectl.
package main

import (
	"os"

	"muster.dev/muster/services/internal/client/program"
	"muster.dev/muster/services/muster/internal/cli"
)

func main() { os.Exit(program.Main(cli.Named(os.Args[0]))) }
