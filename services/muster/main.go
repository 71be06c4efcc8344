// Command muster is the command line of Muster: it submits, shows, follows and
// cancels workloads, and runs all of Muster in one process for a laptop.
package main

import (
	"os"

	"muster.dev/muster/services/muster/internal/cli"
)

func main() { os.Exit(cli.Main()) }
